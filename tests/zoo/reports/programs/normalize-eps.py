"""normalize with an epsilon that is 0 in fp16. https://github.com/pytorch/pytorch/issues/32137"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class CosineHead(nn.Module):
    """Cosines between rows and learned classes, on features of the model's dtype."""

    def __init__(self, width, classes, eps):
        super().__init__()
        self.classes, self.eps = nn.Parameter(torch.randn(classes, width)), eps

    def forward(self, features):
        rows = F.normalize(features, dim=-1, eps=self.eps)
        return 10 * rows.float() @ F.normalize(self.classes, dim=-1).T


run = Training()
body = nn.Sequential(nn.Linear(16, 32, bias=False), nn.ReLU(), nn.Linear(32, 16, bias=False))
head = CosineHead(16, 4, 1e-4 if run.fixed else 1e-12)
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=1e-3)
for _ in range(run.steps):
    x, label = run.normal(32, 16), run.integers(4, 32)
    x[-1] = 0  # padding
    with torch.autocast("cpu", dtype=torch.float16):
        features = body(x)
    run.update(F.cross_entropy(head(features), label), optimizer)
run.end(run.lost(), [*body.parameters(), *head.parameters()])
