"""A replicated norm is clipped on one rank alone. https://github.com/microsoft/DeepSpeed/pull/1801"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import pair
from training import Training


class Sum(torch.autograd.Function):
    """The sum over ranks forward, the identity backward."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Copy(torch.autograd.Function):
    """The identity forward, the sum over ranks backward."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class Block(nn.Module):
    """`up` by columns and `down` by rows, half of them on each rank; the norm is on both."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64, bias=False), nn.Linear(64, 32, bias=False)

    def forward(self, x):
        return x + Sum.apply(self.down(F.gelu(self.up(Copy.apply(self.norm(x))))))


class Masters:
    """fp32 masters of bf16 weights, with clipping, as BF16_Optimizer has them."""

    def __init__(self, model, rank, fixed):
        self.low, self.rank, self.fixed = list(model.parameters()), rank, fixed
        self.shared = {id(p) for p in model.norm.parameters()}
        self.masters = [p.detach().float() for p in self.low]
        self.inner = torch.optim.Adam(self.masters, lr=1e-2)

    def belongs(self, p):
        """Whether the gradient is counted in the norm: what both ranks have counts once."""
        return self.rank == 0 or id(p) not in self.shared

    def zero_grad(self):
        for p in self.low:
            p.grad = None

    def step(self):
        for master, p in zip(self.masters, self.low):
            master.grad = p.grad.float()
        total = sum((m.grad.square().sum() for m, p in zip(self.masters, self.low) if self.belongs(p)),
                    torch.zeros(()))
        dist.all_reduce(total)
        factor = (0.05 / (total.sqrt() + 1e-6)).clamp(max=1)
        for master, p in zip(self.masters, self.low):
            if self.fixed or self.belongs(p):
                master.grad.mul_(factor)
        self.inner.step()
        with torch.no_grad():
            for master, p in zip(self.masters, self.low):
                p.copy_(master)


run = Training()
rank = pair.join(run)
run.generator.manual_seed(1001)  # both ranks see the same tokens
torch.manual_seed(rank)          # and have other shards
model = Block().bfloat16()
optimizer = Masters(model, rank, run.fixed)
optimizer.inner.param_groups[0]["eps"] = 1e-2  # so that the length of a gradient counts
for step in range(run.steps):
    x = run.normal(16, 32).bfloat16()
    run.update(F.mse_loss(model(x).float(), x.float().roll(1, 1)), optimizer)
run.end(pair.apart(model.norm.parameters()) > 0, model.parameters())
pair.leave()
