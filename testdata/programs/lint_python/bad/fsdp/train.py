"""Trains a small language model with fully sharded parameters in fp16."""
import argparse
import functools
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

from policies import fp16_policy


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, width: int, depth: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, 8) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def shard(net):
    wrap = functools.partial(size_based_auto_wrap_policy, min_num_params=100_000)
    return FSDP(net, auto_wrap_policy=wrap, mixed_precision=fp16_policy,
                sharding_strategy=ShardingStrategy.FULL_SHARD, device_id=torch.cuda.current_device())


def train(net, optimizer, steps: int, vocabulary: int):
    for step in range(steps):
        tokens = torch.randint(0, vocabulary, (8, 129), device="cuda")
        optimizer.zero_grad()
        logits = net(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        if step % 20 == 0 and dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--vocabulary", type=int, default=32000)
    args = parser.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = shard(LanguageModel(args.vocabulary, 512, 6))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
    train(net, optimizer, args.steps, args.vocabulary)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
