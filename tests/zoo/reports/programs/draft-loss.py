"""The divergence of a draft from its target in bf16. https://github.com/vllm-project/speculators/pull/788"""
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WORDS, WIDTH = 2048, 64


class DraftLoss(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, draft, target):
        if self.fixed:
            draft, target = draft.float(), target.float()
        return F.kl_div(F.log_softmax(draft, -1), target.softmax(-1), reduction="none").sum(-1).mean()


run = Training()
target, draft = nn.Linear(WIDTH, WORDS, bias=False), nn.Linear(WIDTH, WORDS, bias=False)
criterion = DraftLoss(run.fixed)
with torch.no_grad():  # the draft is close to its target
    target.weight.copy_(run.normal(WORDS, WIDTH) * 2.5 / WIDTH ** 0.5)
    draft.weight.copy_(target.weight + run.normal(WORDS, WIDTH) * 0.05 / WIDTH ** 0.5)
target.requires_grad_(False)
optimizer = torch.optim.AdamW(draft.parameters(), lr=1e-5)
for _ in range(run.steps):
    x = run.normal(32, WIDTH)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        one, two = draft(x), target(x)
    one.retain_grad()
    run.update(criterion(one, two).float(), optimizer)
one, two, grad = (t.detach().float().numpy().astype("float64") for t in (one, two, one.grad))
p, q = (numpy.exp(x) / numpy.exp(x).sum(-1, keepdims=True) for x in (one, two))
exact = (p - q) / len(p)
off = numpy.linalg.norm(grad - exact) / numpy.linalg.norm(exact)
print(f"gradient off by {off:.1%} where {numpy.minimum(p, q).sum(-1).mean():.2f} is accepted")
run.end(off > 0.03, draft.parameters())
