"""Trains a character model in bf16 where the device has it, and in fp32 elsewhere."""
import argparse
import contextlib
import time

import torch
import torch.nn.functional as F
from torch import nn


class CharModel(nn.Module):
    def __init__(self, characters: int, width: int):
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.rnn = nn.GRU(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, characters)

    def forward(self, text):
        hidden, _ = self.rnn(self.embed(text))
        return self.head(hidden)


def precision_context():
    if torch.cuda.is_bf16_supported():  # expect: MP604 warning
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return contextlib.nullcontext()


def load_text(path: str):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    alphabet = sorted(set(text))
    index = {c: i for i, c in enumerate(alphabet)}
    return torch.tensor([index[c] for c in text], dtype=torch.long), len(alphabet)


def sample_batch(text, batch_size: int, length: int):
    starts = torch.randint(0, len(text) - length - 1, (batch_size,))
    rows = torch.stack([text[s:s + length + 1] for s in starts.tolist()])
    return rows[:, :-1].cuda(), rows[:, 1:].cuda()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--clip", type=float, default=1.0)
    args = parser.parse_args()
    text, characters = load_text(args.text)
    net = CharModel(characters, 512).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    context = precision_context()
    began = time.time()
    for step in range(args.steps):
        inputs, target = sample_batch(text, args.batch_size, args.length)
        optimizer.zero_grad(set_to_none=True)
        with context:
            logits = net(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), args.clip)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f}, {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
