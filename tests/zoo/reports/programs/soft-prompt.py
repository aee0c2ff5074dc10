"""Adam on a soft prompt in the dtype of a frozen fp16 model. https://github.com/matanbt/TROPT/pull/8"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class Prompted(nn.Module):
    """A frozen fp16 encoder that reads a trained prompt before a text."""

    def __init__(self, fixed):
        super().__init__()
        self.table = nn.Embedding(64, 32)
        self.encoder = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.half().requires_grad_(False)
        start = self.table(torch.arange(8)).detach()
        self.prompt = nn.Parameter(start.float() if fixed else start)

    def forward(self, tokens):
        text = self.table(tokens)
        prompt = self.prompt.half().expand(len(tokens), -1, -1)
        return self.encoder(torch.cat((prompt, text), 1)).mean(1)


run = Training()
model = Prompted(run.fixed)
optimizer = torch.optim.Adam([model.prompt], lr=1e-2)
with torch.no_grad():
    goal = F.normalize(run.normal(1, 32), dim=-1)
for _ in range(run.steps):
    features = model(run.integers(64, 4, 24)).float()
    run.update(0.01 * (1 - F.cosine_similarity(features, goal).mean()), optimizer)
run.end(run.lost(), [model.prompt])
