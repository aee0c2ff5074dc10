"""Adam's step counter has the default dtype, bf16. https://github.com/pytorch/ao/pull/4915"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

RATE, BETAS, EPS = 1e-3, (0.9, 0.999), 1e-8


class Adam(torch.optim.Optimizer):
    """fp32 throughout but for the counter."""

    def __init__(self, parameters, kind):
        super().__init__(parameters, {})
        self.kind = kind

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state["step"] = torch.tensor(0.0, dtype=self.kind)
                state["mean"], state["square"] = torch.zeros_like(p), torch.zeros_like(p)
            state["step"] += 1
            count = state["step"].float()
            state["mean"].lerp_(p.grad, 1 - BETAS[0])
            state["square"].lerp_(p.grad * p.grad, 1 - BETAS[1])
            deviation = (state["square"] / (1 - BETAS[1] ** count)).sqrt() + EPS
            p -= RATE * state["mean"] / (1 - BETAS[0] ** count) / deviation


run = Training(steps=400)
model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))
data = [run.normal(8, 16) for _ in range(8)]
torch.set_default_dtype(torch.bfloat16)
optimizer = Adam(model.parameters(), torch.float32 if run.fixed else None)
for step in range(run.steps):
    x = data[step % 8]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
    run.update(F.mse_loss(y.float(), x.roll(1, 1)), optimizer)
counter = next(iter(optimizer.state.values()))["step"].item()
print(f"counter {counter:g} after {run.steps} steps")
run.end(counter != run.steps, model.parameters())
