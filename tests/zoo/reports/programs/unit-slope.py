"""The gradient of rsqrt in a normalization in fp16. https://github.com/keras-team/keras/issues/23546"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class Unit(nn.Module):
    """Rows of length 1, by the reciprocal root of their sum of squares."""

    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, x):
        x = x.float() if self.fixed else x
        total = x.square().sum(-1, keepdim=True)
        return x * torch.rsqrt(torch.clamp(total, min=1e-12 ** 2))


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.body, self.head, self.unit = nn.Linear(16, 32), nn.Linear(32, 2), Unit(fixed)
        with torch.no_grad():
            self.head.weight.mul_(0.02)
            self.head.bias.fill_(0.01)

    def forward(self, x):
        return self.unit(self.head(F.gelu(self.body(x))))


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
goal = torch.tensor([0.6, 0.8])
for _ in range(run.steps):
    with torch.autocast("cpu", dtype=torch.float16):
        unit = model(run.normal(16, 16))
    run.update((unit.float() - goal).pow(2).mean(), optimizer)
run.end(run.lost(), model.parameters())
