"""Positions by arange in bf16. https://github.com/pytorch/pytorch/issues/137774"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

FIRST, LAST = 241, 753


class Positions(nn.Module):
    """A learned row for each position of a window that begins at FIRST."""

    def __init__(self, width, fixed):
        super().__init__()
        self.table, self.fixed, self.used = nn.Embedding(1024, width), fixed, None

    def forward(self):
        places = torch.arange(FIRST, LAST, dtype=torch.int64 if self.fixed else torch.bfloat16)
        self.used = places.long()
        return self.table(self.used)


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(64, 32), Positions(32, fixed)
        self.body, self.head = nn.Linear(32, 64), nn.Linear(64, 8)

    def forward(self, tokens):
        return self.head(F.gelu(self.body(self.tokens(tokens) + self.positions())))


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
label = run.integers(8, LAST - FIRST)
for _ in range(run.steps):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(run.integers(64, 2, LAST - FIRST))
    run.update(F.cross_entropy(logits.float().flatten(0, 1), label.repeat(2)), optimizer)
run.end(model.positions.used.unique().numel() < LAST - FIRST, model.parameters())
