"""The gradient of arctan2 in fp16. https://github.com/pytorch/pytorch/issues/115785"""
import torch
from torch import nn

from training import Training

SIZE = 384


class Angle(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, parts):
        parts = parts if self.fixed else parts.half()
        return torch.arctan2(parts[0], parts[1])


class Picture(nn.Module):
    def __init__(self, parts, fixed):
        super().__init__()
        self.parts, self.angle = nn.Parameter(parts), Angle(fixed)

    def forward(self):
        return self.angle(self.parts)


run = Training(steps=6)
model = Picture(run.normal(2, SIZE, SIZE), run.fixed)
target = run.normal(SIZE, SIZE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _ in range(run.steps):
    run.update((model().float() - target).abs().mean() * 1024, optimizer)
run.end(run.lost(), model.parameters())
