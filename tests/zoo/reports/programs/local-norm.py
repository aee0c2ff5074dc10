"""Variances of windows by running sums, in fp16. https://github.com/anthonymlortiz/lcn/issues/4"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class WindowNorm(nn.Module):
    """Each pixel is normalised by the mean and the variance of the window around it: E[x^2] - E[x]^2."""

    def __init__(self, channels, window, fixed):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels, 1, 1)), nn.Parameter(torch.zeros(channels, 1, 1))
        self.window, self.fixed = window, fixed

    def of_windows(self, values):
        """Means over windows, of the size of the picture."""
        w = self.window
        total = F.pad(values.cumsum(2).cumsum(3), (1, 0, 1, 0))
        sums = total[:, :, w:, w:] - total[:, :, :-w, w:] - total[:, :, w:, :-w] + total[:, :, :-w, :-w]
        left = (w - 1) // 2
        return F.pad(sums / (w * w), (left, w - 1 - left, left, w - 1 - left), mode="replicate")

    def forward(self, x):
        x = x.float() if self.fixed else x
        mean = self.of_windows(x)
        variance = self.of_windows(x * x) - mean * mean
        return (x - mean) / (variance + 1e-5).sqrt() * self.weight + self.bias


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), WindowNorm(8, 9, fixed), nn.Linear(8, 4)

    def forward(self, picture):
        return self.head(F.relu(self.norm(self.conv(picture))).mean((2, 3)))


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    picture, label = 20 * run.normal(4, 3, 48, 48), run.integers(4, 4)
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(picture)
    run.update(F.cross_entropy(logits.float(), label), optimizer)
run.end(run.lost(), model.parameters())
