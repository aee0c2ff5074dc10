"""A running total of losses in bf16. https://github.com/pytorch/xla/pull/2425"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

run = Training(steps=400)
model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
total = torch.zeros((), dtype=torch.float32 if run.fixed else torch.bfloat16)
for _ in range(run.steps):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(run.normal(8, 16))
    loss = F.cross_entropy(logits.float(), run.integers(64, 8))
    run.update(loss, optimizer)
    before = total.item()
    total += loss.detach().to(total.dtype)
print(f"average {total.item() / run.steps:.6g} of {sum(run.losses) / run.steps:.6g}")
run.end(total.item() == before, model.parameters())
