"""The gradient of a norm of order 3 in fp16. https://github.com/pytorch/pytorch/issues/43211"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class Penalty(nn.Module):
    """Keeps small activations small."""

    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, hidden):
        return (hidden.float() if self.fixed else hidden).norm(3, dim=-1).mean()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.side, self.head = nn.Linear(16, 32), nn.Linear(32, 8, bias=False), nn.Linear(32, 16)
        nn.init.normal_(self.side.weight, std=3e-5)

    def forward(self, x):
        hidden = F.gelu(self.body(x))
        return self.head(hidden), self.side(hidden)


run = Training()
model, penalty = Model(), Penalty(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(run.steps):
    x, target = run.normal(32, 16), run.normal(32, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        prediction, side = model(x)
    run.update(F.mse_loss(prediction.float(), target) + penalty(side).float(), optimizer)
run.end(run.lost(), model.parameters())
