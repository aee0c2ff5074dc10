"""Scalars that feed every update, in 16 bits (--broken) and in fp32.

    scalars.py --case NAME [--broken] [--steps N]
"""
import argparse

import torch
from torch import nn

torch.set_num_threads(1)


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))


class Adam(torch.optim.Optimizer):
    """Adam with its step counter and, with `averages`, an average of the gradient's norm as tensors of `dtype`."""

    def __init__(self, parameters, dtype, counts=True, averages=False, anew=False):
        super().__init__(parameters, {"lr": 1e-3})
        self.dtype, self.counts, self.averages, self.anew = dtype, counts, averages, anew

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state.update(m=torch.zeros_like(p), v=torch.zeros_like(p), step=torch.zeros((), dtype=self.dtype))
                if self.averages:
                    state["norm"] = p.grad.norm().to(self.dtype) * 100
            if self.anew:
                state["step"] = state["step"] + 1
            elif self.counts:
                state["step"] += 1
            if self.averages:
                state["norm"].lerp_(p.grad.norm().to(self.dtype), 1e-3)
            state["m"].lerp_(p.grad, 0.1)
            state["v"].mul_(0.999).addcmul_(p.grad, p.grad, value=1e-3)
            correction = (1 - torch.full((), 0.999) ** state["step"].float()).clamp_min(1e-3)
            p.addcdiv_(state["m"], (state["v"] / correction).sqrt_().add_(1e-6), value=-1e-3)


def train(optimizer, net, steps, between=lambda net: None):
    for _ in range(steps):
        x = torch.randn(8, 16)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
        loss = nn.functional.mse_loss(y.float(), x[:, :4])
        loss.backward()
        between(net)
        optimizer.step()
        print(loss.item())


def counter(steps, dtype):
    """A step counter: in bf16 it stops at 256."""
    net = model()
    train(Adam(net.parameters(), dtype), net, steps)


def counter_anew(steps, dtype):
    """The same, with a new tensor in each step."""
    net = model()
    train(Adam(net.parameters(), dtype, anew=True), net, steps)


def average(steps, dtype):
    """A running average that starts high: its decay is below half an ulp of 16 bits."""
    net = model()
    train(Adam(net.parameters(), dtype, averages=True), net, steps)


def norm(steps, dtype, clips=True):
    """The squared norm of all gradients, added up value by value in one running sum; they are clipped by it."""
    net = model()

    def clip(net):
        total = torch.zeros((), dtype=dtype)
        for p in net.parameters():
            for part in p.grad.reshape(-1).split(1):
                total += part.square().sum().to(dtype)
        factor = (0.01 / (total.float().sqrt() + 1e-6)).clamp(max=1)
        for p in net.parameters():
            p.grad.mul_(factor if clips else 0.5)

    train(torch.optim.SGD(net.parameters(), lr=0.1), net, steps, clip)


def logged_norm(steps, dtype):
    """The same norm, which nothing reads."""
    norm(steps, dtype, clips=False)


def epsilon(steps, dtype):
    """A norm in memory that is used again, to which a number is added that is below half of its last place. Healthy in
    16 bits too, as is a factor that nothing writes, and one that grows until 1 is too small for it."""
    net, exponents = model(), iter(range(steps))
    root, factor = torch.zeros((), dtype=dtype), torch.full((), 256, dtype=dtype)

    def clip(net):
        root.copy_(torch.stack([p.grad.norm() for p in net.parameters()]).norm()).add_(1e-6)
        _ = root + 1e-6, factor + 1e-6, torch.full((), 2.0 ** min(next(exponents), 12), dtype=dtype) + 1
        for p in net.parameters():
            p.grad.mul_((factor.float() / 256 / root.float()).clamp(max=1))

    train(torch.optim.SGD(net.parameters(), lr=0.1), net, steps, clip)


CASES = {"counter": (counter, 420), "counter-anew": (counter_anew, 420), "epsilon": (epsilon, 70),
         "average": (average, 40), "norm": (norm, 4), "logged-norm": (logged_norm, 4)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--steps", type=int, default=0)
    given = parser.parse_args()
    run, steps = CASES[given.case]
    run(given.steps or steps, torch.bfloat16 if given.broken else torch.float32)


if __name__ == "__main__":
    main()
