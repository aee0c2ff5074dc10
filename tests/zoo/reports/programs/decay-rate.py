"""The exponential of a state space's decay in bf16. https://github.com/state-spaces/mamba/pull/923"""
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

HEADS, LENGTH = 16, 32


class Mixer(nn.Module):
    """A state for each head, that decays by exp(step * rate) at each token."""

    def __init__(self, fixed):
        super().__init__()
        self.rate_log = nn.Parameter(torch.arange(1.0, HEADS + 1).log())
        self.step_bias = nn.Parameter(torch.full((HEADS,), -3.0))
        self.steps, self.entry, self.exit = nn.Linear(16, HEADS), nn.Linear(16, HEADS), nn.Linear(HEADS, 16)
        self.fixed, self.seen = fixed, None

    def forward(self, x):
        low = self.rate_log.bfloat16()
        rate = -torch.exp(low.float() if self.fixed else low)
        self.seen = low.detach(), rate.detach()
        step = F.softplus(self.steps(x).float() + self.step_bias)
        decay, entry = torch.exp(step * rate), step * self.entry(x).float()
        state, states = torch.zeros(len(x), HEADS), []
        for t in range(LENGTH):
            state = decay[:, t] * state + entry[:, t]
            states.append(state)
        return self.exit(torch.stack(states, 1))


run = Training()
model = nn.Sequential(nn.Linear(8, 16), Mixer(run.fixed), nn.Linear(16, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    x = run.normal(8, LENGTH, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
    run.update(F.mse_loss(y.float(), x.cumsum(1) / 4), optimizer)
low, rate = (t.float().numpy().astype("float64") for t in model[1].seen)
off = numpy.abs(-rate / numpy.exp(low) - 1).max()
print(f"rates off by {off:.3g}")
run.end(off > 2 ** -12, model.parameters())
