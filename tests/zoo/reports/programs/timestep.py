"""The time step of a diffusion in bf16. https://github.com/modelscope/DiffSynth-Studio/pull/1025"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

HALF_WIDTH = 32


class TimeEmbedding(nn.Module):
    """Sines and cosines in fp64, given back in the dtype of the time step."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2 * HALF_WIDTH, 64)

    def forward(self, time, kind):
        rates = 10000 ** (-torch.arange(HALF_WIDTH, dtype=torch.float64) / HALF_WIDTH)
        angle = torch.outer(time.double(), rates)
        return self.layer(torch.cat((angle.cos(), angle.sin()), 1).to(kind))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time, self.entry, self.exit = TimeEmbedding(), nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, noisy, time):
        return self.exit(F.silu(self.entry(noisy) + self.time(time, torch.bfloat16)))


run = Training()
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
off = 0.0
for _ in range(run.steps):
    clean, noise = run.normal(32, 16), run.normal(32, 16)
    part = torch.rand(32, generator=run.generator)
    time = 1000 * part if run.fixed else (1000 * part).bfloat16()
    off = max(off, (time.float() - 1000 * part).abs().max().item())
    noisy = (1 - part[:, None]) * clean + part[:, None] * noise
    with torch.autocast("cpu", dtype=torch.bfloat16):
        flow = model(noisy, time)
    run.update(F.mse_loss(flow.float(), noise - clean), optimizer)
run.end(off > 1, model.parameters())
