"""A floor of 1e-12 under a square root in fp16, at rotations of 0. https://github.com/kornia/kornia/pull/4613"""
import torch
from torch import nn

from training import Training


class Rotation(nn.Module):
    """Rotates points by an axis times an angle: by Rodrigues, and where the angle is small by its first terms."""

    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, vector, points):
        square = (vector * vector).sum(-1, keepdim=True)
        large = square > 1e-6
        angle = (torch.where(large, square, 1.0) if self.fixed else square.clamp(min=1e-12)).sqrt()
        axis = (vector / (angle + 1e-6)).expand_as(points)
        sine, cosine = angle.sin(), angle.cos()
        along = (axis * points).sum(-1, keepdim=True)
        normal = cosine * points + sine * torch.cross(axis, points, dim=-1) + (1 - cosine) * along * axis
        small = points + torch.cross(vector.expand_as(points), points, dim=-1)
        return torch.where(large, normal, small)


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.body, self.head, self.rotation = nn.Linear(16, 32), nn.Linear(32, 3), Rotation(fixed)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x, points):
        return self.rotation(self.head(torch.tanh(self.body(x))), points)


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(run.steps):
    points = run.normal(32, 3)
    with torch.autocast("cpu", dtype=torch.float16):
        turned = model(run.normal(32, 16), points.half())
    run.update((turned.float() - points.roll(1, 1)).pow(2).mean(), optimizer)
run.end(run.lost(), model.parameters())
