"""fp16 autocast without a loss scale. https://github.com/engichang1467/Open-Rig3R/issues/35"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

PIXELS = 32768


class Model(nn.Module):
    """A point and the direction of a ray for each pixel."""

    def __init__(self):
        super().__init__()
        self.body, self.points, self.rays = nn.Linear(8, 32), nn.Linear(32, 3), nn.Linear(32, 3)

    def forward(self, pixels):
        hidden = F.gelu(self.body(pixels))
        return self.points(hidden), self.rays(hidden)


run = Training()
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
kind = torch.bfloat16 if run.fixed else torch.float16
zeros = []
model.rays.register_full_backward_hook(lambda module, inner, outer: zeros.append((outer[0] == 0).float().mean().item()))
for _ in range(run.steps):
    pixels, place = run.normal(PIXELS, 8), 10 * run.normal(PIXELS, 3)
    with torch.no_grad():
        goal = model(pixels)[1] + 0.01 * run.normal(PIXELS, 3)
    with torch.autocast("cpu", dtype=kind):
        points, rays = model(pixels)
    bent = 1 - F.cosine_similarity(rays.float(), goal).mean()
    run.update(F.mse_loss(points.float(), place) + bent, optimizer)
print(f"zeros {zeros[0]:.4g}")
run.end(zeros[0] > 0.01, model.parameters())
