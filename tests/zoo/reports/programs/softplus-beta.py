"""softplus with a very small beta leaves fp16. https://github.com/pytorch/pytorch/issues/187180"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class Gate(nn.Module):
    """A soft hinge that is nearly linear: log(2) / beta from an input of 0."""

    def __init__(self, fixed):
        super().__init__()
        self.inner, self.fixed = nn.Linear(16, 16), fixed

    def forward(self, x):
        hidden = self.inner(x)
        return F.softplus(hidden.float() if self.fixed else hidden, beta=1e-6)


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.skip, self.gate = nn.Linear(16, 16), Gate(fixed)

    def forward(self, x):
        return self.skip(x) + 1e-5 * self.gate(x)


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    x, target = run.normal(32, 16), 7 + run.normal(32, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        prediction = model(x)
    run.update(F.mse_loss(prediction.float(), target), optimizer)
run.end(run.lost(), model.parameters())
