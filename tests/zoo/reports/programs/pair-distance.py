"""Distances by a matrix product in fp16. https://github.com/pytorch/pytorch/issues/136748"""
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WIDTH = 4096


class Distances(nn.Module):
    """From the rows of a batch to learned centres."""

    def __init__(self, fixed):
        super().__init__()
        self.centre, self.fixed, self.seen = nn.Parameter(torch.rand(4, WIDTH)), fixed, None

    def forward(self, x):
        one, two = x.half(), self.centre.half()
        if self.fixed:
            one, two = one.float(), two.float()
        result = torch.cdist(one, two, compute_mode="use_mm_for_euclid_dist").half()
        self.seen = [t.detach() for t in (one, two, result)]
        return result


run = Training()
distances = Distances(run.fixed)
model = nn.Sequential(nn.Linear(16, WIDTH), nn.Sigmoid(), distances)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    label = run.integers(4, 32)
    run.update(F.cross_entropy(-model(run.normal(32, 16)).float(), label), optimizer)
one, two, result = (t.numpy().astype("float64") for t in distances.seen)
exact = numpy.linalg.norm(one[:, None] - two, axis=-1)
off, least = (numpy.sqrt(numpy.square(d - exact).mean()) for d in (result, exact.astype("float16")))
print(f"off by {off:.3g}, rounding by {least:.3g}")
run.end(off > 1.5 * least, model.parameters())
