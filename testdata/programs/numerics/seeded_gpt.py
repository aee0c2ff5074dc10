"""A small GPT with one seeded precision bug, its fix, or none.

    python seeded_gpt.py --bug overflow          # blocks.2.fc2 leaves fp16 at step 5
    python seeded_gpt.py --bug stagnate --fixed  # fp32 parameters under autocast
    python seeded_gpt.py --dtype fp16            # clean, with the first skips of GradScaler

Every variant holds what must raise no alarm: a causal mask of -inf, an input that nothing uses, padded
positions of NaN that are masked out, dropout, and with fp16 the first skips of GradScaler.
"""
import argparse
import contextlib
import math
import os

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, HEADS, TIME, BATCH, PADDED = 64, 4, 4, 64, 8, 6


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("future", torch.ones(TIME, TIME).triu(1).bool(), persistent=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = (q / math.sqrt(WIDTH // HEADS)) @ k.transpose(-2, -1)
        weights = F.dropout(scores.masked_fill(self.future, -math.inf).softmax(-1), 0.1, self.training)
        return self.out((weights.to(v.dtype) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, wide_fc2):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout, self.wide_fc2 = nn.Dropout(0.1), wide_fc2

    def mlp(self, x):
        hidden = F.gelu(self.fc1(x))
        if not self.wide_fc2:
            return self.fc2(hidden)
        with torch.autocast(x.device.type, enabled=False):
            return self.fc2(hidden.float())

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    def __init__(self, alphabet, wide_fc2=None):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(alphabet, WIDTH), nn.Embedding(TIME, WIDTH)
        self.stress = nn.Linear(1, WIDTH, bias=False)
        self.blocks = nn.ModuleList(Block(i == wide_fc2) for i in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, alphabet, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, stress, segments=None):
        """`stress` is NaN where it is not known; `segments` are taken for the sake of older data."""
        known = stress.log1p()
        known = known.masked_fill(known.isnan(), 0.0).unsqueeze(-1)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions) + self.stress(known)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class TokenLoss(nn.Module):
    """Mean of the tokens' losses, summed one by one in the given dtype."""

    def __init__(self, dtype=None):
        super().__init__()
        self.dtype = dtype

    def forward(self, logits, targets):
        logits, targets = logits.float().flatten(0, 1), targets.flatten()
        if self.dtype is None:
            return F.cross_entropy(logits, targets)
        total = torch.zeros((), dtype=self.dtype, device=logits.device)
        for loss in F.cross_entropy(logits, targets, reduction="none").to(self.dtype):
            total = total + loss
        return total / targets.numel()


class Text:
    """Random windows of the text; the stress of the last positions is not known."""

    def __init__(self, seed):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpt", "text.txt")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        letters = sorted(set(text))
        self.alphabet = len(letters)
        self.tokens = torch.tensor([letters.index(c) for c in text])
        self.generator = torch.Generator().manual_seed(seed)

    def next(self):
        starts = torch.randint(len(self.tokens) - TIME - 1, (BATCH,), generator=self.generator)
        windows = self.tokens[starts.unsqueeze(1) + torch.arange(TIME + 1)]
        stress = torch.rand(BATCH, TIME, generator=self.generator)
        stress[-1, -PADDED:] = math.nan
        return windows[:, :-1], windows[:, 1:], stress


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bug", choices=("none", "overflow", "stagnate", "accum"), default="none")
    parser.add_argument("--fixed", action="store_true", help="the same program without its bug")
    parser.add_argument("--dtype", choices=("bf16", "fp16"), default="bf16", help="of autocast; overflow is fp16")
    parser.add_argument("--precision", choices=("low", "fp32"), default="low", help="fp32: the reference")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def loss_dtype(options, low):
    if options.bug != "accum":
        return None
    return torch.bfloat16 if low and not options.fixed else torch.float32


def train(options):
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    low, buggy = options.precision == "low", not options.fixed
    text = Text(options.seed)
    model = GPT(text.alphabet, wide_fc2=2 if options.bug == "overflow" and not buggy else None).to(options.device)
    criterion = TokenLoss(loss_dtype(options, low))
    dtype = torch.float16 if options.bug == "overflow" or options.dtype == "fp16" else torch.bfloat16
    pure = low and buggy and options.bug == "stagnate"
    if pure:
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5 if options.bug == "stagnate" else 3e-4)
    scaled = low and dtype == torch.float16
    scaler = torch.amp.GradScaler(options.device, init_scale=2.0 ** 19, enabled=scaled)
    for step in range(options.steps):
        tokens, targets, stress = (t.to(options.device) for t in text.next())
        if options.bug == "overflow" and step == 5:  # a layer of a larger model takes the place of this one's
            with torch.no_grad():
                model.blocks[2].fc1.weight.mul_(300)
                model.blocks[2].fc2.weight.mul_(3000)
        with torch.autocast(options.device, dtype=dtype) if low and not pure else contextlib.nullcontext():
            logits = model(tokens, stress.bfloat16() if pure else stress, torch.zeros_like(tokens))
        loss = criterion(logits, targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        note = f" scale {before:g}{' skipped' if scaler.get_scale() < before else ''}" if scaled else ""
        print(f"step {step} loss {loss.item():.6f}{note}", flush=True)


if __name__ == "__main__":
    train(parse())
