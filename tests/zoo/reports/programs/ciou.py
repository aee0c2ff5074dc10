"""CIoU of two equal boxes with an epsilon of 1e-9 in fp16. https://github.com/ultralytics/yolov5/issues/2376"""
import math

import torch
from torch import nn

from training import Training


class BoxLoss(nn.Module):
    """One minus the complete IoU of boxes (centre, width, height)."""

    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, one, two):
        (x1, y1, w1, h1), (x2, y2, w2, h2) = one.unbind(-1), two.unbind(-1)
        left, right = torch.maximum(x1 - w1 / 2, x2 - w2 / 2), torch.minimum(x1 + w1 / 2, x2 + w2 / 2)
        top, bottom = torch.maximum(y1 - h1 / 2, y2 - h2 / 2), torch.minimum(y1 + h1 / 2, y2 + h2 / 2)
        common = (right - left).clamp(0) * (bottom - top).clamp(0)
        overlap = common / (w1 * h1 + w2 * h2 - common + self.eps)
        wide = torch.maximum(x1 + w1 / 2, x2 + w2 / 2) - torch.minimum(x1 - w1 / 2, x2 - w2 / 2)
        high = torch.maximum(y1 + h1 / 2, y2 + h2 / 2) - torch.minimum(y1 - h1 / 2, y2 - h2 / 2)
        apart = (x1 - x2) ** 2 + (y1 - y2) ** 2
        shape = 4 / math.pi ** 2 * (torch.atan(w2 / h2) - torch.atan(w1 / h1)) ** 2
        with torch.no_grad():
            share = shape / ((1 - overlap + shape) + self.eps)
        return (1 - overlap + apart / (wide ** 2 + high ** 2 + self.eps) + share * shape).float().mean()


run = Training()
model, criterion = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)), BoxLoss(1e-7 if run.fixed else 1e-9)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(run.steps):
    target = torch.rand(16, 4, generator=run.generator) * 4 + 1
    with torch.autocast("cpu", dtype=torch.float16):
        box = model(run.normal(16, 16)) + 3
    target = target.half()
    if step == 3:  # one box is where it should be
        target[0] = box[0].detach()
    run.update(criterion(box, target), optimizer)
run.end(run.lost(), model.parameters())
