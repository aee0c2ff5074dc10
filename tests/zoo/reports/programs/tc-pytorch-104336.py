"""A wrapped model is moved, and DDP's hooks are lost. https://github.com/pytorch/pytorch/issues/104336"""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import pair
from training import Training

run = Training()
pair.join(run)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
ddp = DistributedDataParallel(model)
ddp.double()
ddp.float()
if run.fixed:
    ddp = DistributedDataParallel(model)
for step in range(run.steps):
    x = run.normal(8, 16)
    run.update(F.mse_loss(ddp(x), x[:, :8]), optimizer)
run.end(pair.apart(model.parameters()) > 0, model.parameters())
pair.leave()
