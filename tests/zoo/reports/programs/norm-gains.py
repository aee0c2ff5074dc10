"""Gains of a norm in bf16 under an Adam in fp32. https://github.com/workofart/ml-by-hand/pull/85"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

RATE, BETAS = 6e-4, (0.9, 0.95)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.gain * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm, self.head = nn.Embedding(64, 768), Norm(768), nn.Linear(768, 64, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.words(tokens)))


class Adam(torch.optim.Optimizer):
    """Computes in fp32 and writes back in the dtype of the parameters; with `masters` it keeps the fp32 values."""

    def __init__(self, parameters, masters):
        super().__init__(parameters, {})
        self.masters, self.count = masters, 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["value"] = p.float()
                state["mean"], state["square"] = (torch.zeros_like(state["value"]) for _ in range(2))
            value, grad = state["value"] if self.masters else p.float(), p.grad.float()
            state["mean"].lerp_(grad, 1 - BETAS[0])
            state["square"].lerp_(grad * grad, 1 - BETAS[1])
            mean = state["mean"] / (1 - BETAS[0] ** self.count)
            square = state["square"] / (1 - BETAS[1] ** self.count)
            value -= RATE * mean / (square.sqrt() + 1e-8)
            p.copy_(value)


run = Training()
model = Model().bfloat16()
optimizer = Adam(model.parameters(), run.fixed)
for _ in range(run.steps):
    tokens = run.integers(64, 256)
    run.update(F.cross_entropy(model(tokens).float(), (tokens + 1) % 64), optimizer)
run.end(bool((model.norm.gain == 1).all()), model.parameters())
