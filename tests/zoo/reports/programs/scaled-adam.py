"""Adam in fp16 on gradients scaled to near 1,000. https://github.com/warner-benjamin/optimi/pull/15"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

RATE, BETAS, EPS, SCALE = 1e-3, (0.9, 0.99), 1e-6, 65536.0


class Adam(torch.optim.Optimizer):
    """Means with debiased rates, in the dtype of the parameters; `scale` is in all gradients."""

    def __init__(self, parameters, scale, fixed):
        super().__init__(parameters, {})
        self.scale, self.fixed, self.count = scale, fixed, 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        rates = [(b ** self.count - b) / (b ** self.count - 1) for b in BETAS]
        for p in self.param_groups[0]["params"]:
            grad = p.grad.float() / self.scale if self.fixed else p.grad
            state = self.state[p]
            if not state:
                state["mean"], state["square"] = torch.zeros_like(grad), torch.zeros_like(grad)
                state["value"] = p.float() if self.fixed else p
            state["mean"].lerp_(grad, 1 - rates[0])
            state["square"].mul_(rates[1]).addcmul_(grad, grad, value=1 - rates[1])
            state["value"].addcdiv_(state["mean"], state["square"].sqrt().add_(EPS), value=-RATE)
            if self.fixed:
                p.copy_(state["value"])


run = Training()
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)).half()
x = run.normal(64, 16)
optimizer = Adam(model.parameters(), SCALE, run.fixed)
start = model[2].weight.detach().clone()
for _ in range(run.steps):
    loss = F.mse_loss(model(x.half()).float(), x.roll(1, 1))
    optimizer.zero_grad()
    (SCALE * loss).backward()
    optimizer.step()
    run.note(loss)
still = (model[2].weight == start).float().mean().item()
print(f"{still:.1%} of a matrix did not move")
run.end(still > 0.5, model.parameters())
