"""Activations arrive as zeros on the next device. https://github.com/baichuan-inc/Baichuan2/issues/86"""
import torch
from torch import nn
from torch.nn import functional as F

import pair
from training import Training


class Transfer(nn.Module):
    """A copy for the next stage; every third one is lost."""
    sent = 0

    def forward(self, x):
        y = x.clone()
        self.sent += 1
        if self.sent % 3 == 0 and not run.fixed:
            pair.lose(y)
        return y


run = Training()
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), Transfer(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
data = run.normal(8, 16)
for step in range(run.steps):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(data)
    run.update(F.mse_loss(y.float(), data.roll(1, 1)), optimizer)
run.end(any(run.losses[k] > run.losses[k - 1] for k in range(2, run.steps, 3)), model.parameters())
