"""Cross entropy of bf16 logits. https://github.com/Modalities/modalities/pull/464"""
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WORDS = 256


class Low(nn.Linear):
    """Weights are cast to bf16 in forward, as a sharded model casts them; no autocast."""

    def forward(self, x):
        return F.linear(x.bfloat16(), self.weight.bfloat16(), self.bias.bfloat16())


class TokenLoss(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed, self.seen = fixed, None

    def forward(self, logits, label):
        loss = F.cross_entropy(logits.float() if self.fixed else logits, label)
        self.seen = logits.detach(), label
        return loss


run = Training()
model, criterion = nn.Sequential(Low(32, 64), nn.GELU(), Low(64, WORDS)), TokenLoss(run.fixed)
with torch.no_grad():
    model[2].weight.mul_(60)  # a loss near 36
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
off = 0.0
for _ in range(run.steps):
    run.update(criterion(model(run.normal(64, 32)), run.integers(WORDS, 64)).float(), optimizer)
    logits, label = criterion.seen[0].float().numpy().astype("float64"), criterion.seen[1].numpy()
    exact = numpy.mean(numpy.log(numpy.exp(logits).sum(-1)) - logits[range(len(label)), label])
    off = max(off, abs(run.losses[-1] - exact))
print(f"loss off by {off:.3g}")
run.end(off > 0.01, model.parameters())
