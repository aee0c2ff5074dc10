"""Adam on fp16 weights of two encoders. https://github.com/openai/CLIP/issues/40"""
import contextlib

import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class Pair(nn.Module):
    """Cosines between pictures and texts."""

    def __init__(self):
        super().__init__()
        self.picture = nn.Sequential(nn.Linear(48, 64), nn.GELU(), nn.Linear(64, 32))
        self.words, self.text = nn.Embedding(256, 32), nn.Linear(32, 32)

    def forward(self, pictures, tokens):
        seen, read = self.picture(pictures), self.text(self.words(tokens).mean(1))
        seen, read = (x / x.norm(dim=-1, keepdim=True) for x in (seen, read))
        return seen @ read.T


run = Training()
model = Pair() if run.fixed else Pair().half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
label = torch.arange(8)
for _ in range(run.steps):
    pictures, tokens = run.normal(8, 48), run.integers(256, 8, 12)
    with torch.autocast("cpu", dtype=torch.float16) if run.fixed else contextlib.nullcontext():
        cosines = model(pictures if run.fixed else pictures.half(), tokens)
    run.update((F.cross_entropy(cosines.float(), label) + F.cross_entropy(cosines.float().T, label)) / 2, optimizer)
run.end(run.lost(), model.parameters())
