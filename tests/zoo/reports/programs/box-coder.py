"""The logarithm of a box's size with an epsilon of 0. https://github.com/rwightman/efficientdet-pytorch/issues/291"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class BoxLoss(nn.Module):
    """Boxes (centre and size) against anchors, as offsets and logarithms of sizes."""

    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def coded(self, boxes, anchors):
        size, of_anchor = boxes[:, 2:] + self.eps, anchors[:, 2:] + self.eps
        return torch.cat(((boxes[:, :2] - anchors[:, :2]) / of_anchor, torch.log(size / of_anchor)), 1)

    def forward(self, prediction, boxes, anchors):
        return F.huber_loss(prediction.float(), self.coded(boxes, anchors).float())


run = Training()
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
criterion = BoxLoss(1e-7 if run.fixed else 1e-8)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(run.steps):
    features = run.normal(64, 16)
    boxes, anchors = (0.2 + 0.6 * torch.rand(2, 64, 4, generator=run.generator)).half()
    if step >= 3:
        boxes[7, 3] = 0
    with torch.autocast("cpu", dtype=torch.float16):
        prediction = model(features)
    run.update(criterion(prediction, boxes, anchors), optimizer)
run.end(run.lost(), model.parameters())
