"""The table of a noise schedule in fp16. https://github.com/AUTOMATIC1111/stable-diffusion-webui/issues/14071"""
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

STEPS, WIDTH = 1000, 16


class Schedule(nn.Module):
    """Noise levels of time steps, from the products of all alphas up to there."""

    def __init__(self):
        super().__init__()
        rates = torch.linspace(0.00085 ** 0.5, 0.012 ** 0.5, STEPS, dtype=torch.float64) ** 2
        self.register_buffer("products", (1 - rates).cumprod(0).float())

    def forward(self, time):
        products = self.products[time].float()
        return ((1 - products) / products).sqrt()


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.schedule, self.entry, self.exit = Schedule(), nn.Linear(WIDTH + 1, 64), nn.Linear(64, WIDTH)

    def forward(self, clean, noise, time):
        level = self.schedule(time)[:, None]
        noisy = (clean + level * noise) / (1 + level * level).sqrt()
        return self.exit(F.silu(self.entry(torch.cat((noisy, level.log()), 1))))


run = Training()
model = Denoiser()
exact = model.schedule.products.numpy().astype("float64")
if not run.fixed:  # the model is loaded in fp16; its weights go back to fp32, and so does the table
    model.schedule.half()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    clean, noise = run.normal(32, WIDTH), run.normal(32, WIDTH)
    time = torch.cat((run.integers(8, 16), run.integers(STEPS, 16)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        predicted = model(clean, noise, time)
    run.update(F.mse_loss(predicted.float(), noise), optimizer)
table = model.schedule.products.numpy().astype("float64")
off = numpy.abs(numpy.sqrt((1 - table) / table / ((1 - exact) / exact)) - 1).max()
print(f"noise off by {off:.1%}")
run.end(off > 0.05, model.parameters())
