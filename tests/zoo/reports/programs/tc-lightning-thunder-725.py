"""Products in an autocast region run in fp32. https://github.com/Lightning-AI/lightning-thunder/issues/725"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


def primitive(x, weight, bias):
    """A compiler's own linear(), to which autocast is not applied; with the fix its inputs are cast."""
    if run.fixed:
        kind = torch.get_autocast_dtype("cpu")
        x, weight, bias = x.to(kind), weight.to(kind), bias.to(kind)
    with torch.autocast("cpu", enabled=False):
        y = F.linear(x, weight, bias)
    formats.add(y.dtype)
    return y


class Linear(nn.Linear):
    def forward(self, x):
        return primitive(x, self.weight, self.bias)


run, formats = Training(), set()
model = nn.Sequential(Linear(16, 32), nn.GELU(), Linear(32, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(run.steps):
    x = run.normal(8, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
    run.update(F.mse_loss(y.float(), x.roll(1, 1)), optimizer)
run.end(formats != {torch.bfloat16}, model.parameters())
