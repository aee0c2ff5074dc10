"""A router's correction bias in bf16. https://github.com/sgl-project/sglang/pull/37133"""
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

EXPERTS, CHOSEN, WIDTH = 256, 8, 16


class Gate(nn.Module):
    """Chooses experts by sigmoid plus bias and weighs them by sigmoid."""

    def __init__(self, fixed):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(EXPERTS, WIDTH) * 0.02)
        exact = torch.linspace(6.817, 7.063, EXPERTS)[torch.randperm(EXPERTS)]
        self.register_buffer("bias", exact if fixed else exact.bfloat16())
        self.exact, self.seen = exact.numpy().copy(), None

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            score = F.linear(x.float(), self.weight).sigmoid()
        chosen = (score + self.bias).topk(CHOSEN).indices
        self.seen = score.detach(), chosen
        weight = score.gather(1, chosen)
        return chosen, weight / weight.sum(-1, keepdim=True)


class Mixture(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.gate, self.experts = Gate(fixed), nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) / WIDTH ** 0.5)

    def forward(self, x):
        chosen, weight = self.gate(x)
        result = torch.einsum("nd,nkde->nke", x, self.experts[chosen])
        return (weight[..., None] * F.gelu(result)).sum(1)


run = Training()
model = nn.Sequential(nn.Linear(WIDTH, WIDTH), Mixture(run.fixed), nn.Linear(WIDTH, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(run.normal(64, WIDTH))
    run.update(F.cross_entropy(logits.float(), run.integers(8, 64)), optimizer)
score, chosen = (t.numpy() for t in model[1].gate.seen)
wanted = numpy.argsort(score + model[1].gate.exact)[:, -CHOSEN:]
moved = numpy.mean([set(a) != set(b) for a, b in zip(chosen, wanted)])
print(f"{moved:.1%} of the rows have other experts")
run.end(moved > 0.5, model.parameters())
