"""Loss-scaled gradients are cast to fp16 before Newton-Schulz. https://github.com/deepspeedai/DeepSpeed/pull/8533"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

SCALE = 65536.0


def orthogonal(matrix, fixed):
    """Five steps of a quintic iteration in fp16, which the scale of the matrix should not change."""
    if fixed:
        x = (matrix / (matrix.norm() + 1e-7)).half()
    else:
        x = matrix.half()
        x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    return x.float()


class Muon(torch.optim.Optimizer):
    """Takes gradients with the loss scale in them."""

    def __init__(self, parameters, fixed):
        super().__init__(parameters, {})
        self.fixed = fixed

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
            momentum.lerp_(p.grad, 0.05)
            p -= 0.02 * orthogonal(p.grad.lerp(momentum, 0.95), self.fixed)


run = Training()
model = nn.Sequential(nn.Linear(16, 32, bias=False), nn.GELU(), nn.Linear(32, 16, bias=False))
optimizer = Muon(model.parameters(), run.fixed)
for _ in range(run.steps):
    x = run.normal(64, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x)
    loss = 256 * F.mse_loss(y.float(), 4 * x.roll(1, 1))
    optimizer.zero_grad()
    (SCALE * loss).backward()
    optimizer.step()
    run.note(loss)
run.end(run.lost(), model.parameters())
