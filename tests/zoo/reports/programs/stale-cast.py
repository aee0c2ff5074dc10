"""One autocast region around all updates. https://github.com/X-GenGroup/Flow-Factory/pull/186"""
import contextlib

import torch
from torch import nn
from torch.nn import functional as F

from training import Training

run = Training()
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, target = run.normal(64, 16), run.normal(64, 16)


def region(wanted):
    return torch.autocast("cpu", dtype=torch.bfloat16) if wanted else contextlib.nullcontext()


with region(not run.fixed):
    for _ in range(run.steps):
        with region(run.fixed):
            prediction = model(x)
        run.update(F.mse_loss(prediction.float(), target), optimizer)
run.end(len(set(run.losses)) == 1, model.parameters())
