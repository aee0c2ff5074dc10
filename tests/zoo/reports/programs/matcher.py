"""The cost of a match is summed over all pixels in fp16. https://github.com/huggingface/transformers/issues/25938"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

PIXELS, QUERIES, MASKS = 65536, 8, 2


class Matcher(nn.Module):
    """The cheapest query for each mask."""

    def __init__(self, fixed):
        super().__init__()
        self.fixed, self.cost = fixed, None

    @torch.no_grad()
    def forward(self, logits, masks):
        inside = F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits), reduction="none")
        outside = F.binary_cross_entropy_with_logits(logits, torch.zeros_like(logits), reduction="none")
        if self.fixed:
            inside, outside = inside / PIXELS, outside / PIXELS
        self.cost = inside @ masks.T + outside @ (1 - masks).T
        if not self.fixed:
            self.cost = self.cost / PIXELS
        return self.cost.argmin(0)


class Model(nn.Module):
    """Masks by queries on features of pixels; no mask at first."""

    def __init__(self):
        super().__init__()
        self.pixels, self.queries = nn.Linear(8, 16), nn.Linear(16, QUERIES)
        nn.init.constant_(self.queries.bias, -2.0)

    def forward(self, picture):
        return self.queries(F.relu(self.pixels(picture))).T


run = Training()
model, matcher = Model(), Matcher(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
costs = []
for _ in range(run.steps):
    picture = run.normal(PIXELS, 8)
    masks = (picture[:, :MASKS].T > -1).float()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(picture)
        match = matcher(logits, masks)
    costs.append(matcher.cost)
    run.update(F.binary_cross_entropy_with_logits(logits[match].float(), masks), optimizer)
run.end(not bool(costs[0].isfinite().all()), model.parameters())
