"""Gradients are clipped before they are unscaled. https://github.com/victorchall/EveryDream2trainer/pull/175"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

run = Training()
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 16))
start = torch.cat([p.detach().flatten() for p in model.parameters()])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=3e-6, weight_decay=0.0)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
for _ in range(run.steps):
    x, label = run.normal(32, 64), run.integers(16, 32)
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(x)
    loss = F.cross_entropy(logits.float(), label)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    if run.fixed:
        scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    run.note(loss)
moved = (torch.cat([p.detach().flatten() for p in model.parameters()]) - start).abs().mean()
run.end(moved < 0.1 * 1e-3 * run.steps, model.parameters())
