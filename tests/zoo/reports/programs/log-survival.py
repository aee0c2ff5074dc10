"""A clamp to 1 - 1e-6, which is 1 in bf16, before log1p. https://github.com/fastino-ai/GLiNER2/pull/155"""
import torch
from torch import nn

from training import Training

GROUPS = 16


class ConsistencyLoss(nn.Module):
    """The marginal of a group is the chance that at least one of its pairs holds."""

    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, pair, group, marginal):
        pair = pair.float() if self.fixed else pair
        survival = torch.log1p(-pair.clamp(max=1 - 1e-6))
        total = torch.zeros(GROUPS, dtype=survival.dtype).scatter_add_(0, group, survival)
        return (1 - total.exp() - marginal).float().pow(2).mean()


run = Training()
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
criterion = ConsistencyLoss(run.fixed)
with torch.no_grad():
    model[2].weight.mul_(30)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(run.steps):
    x, group = run.normal(64, 16), run.integers(GROUPS, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pair = model(x)[:, 0].sigmoid()
    run.update(criterion(pair, group, (run.normal(GROUPS) > 0).float()), optimizer)
run.end(run.lost(), model.parameters())
