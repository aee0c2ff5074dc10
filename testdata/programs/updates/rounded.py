"""Weights in fp32 whose values a program rounds to 16 bits after each step (--broken), and programs that only look so.

    rounded.py --case NAME [--broken] [--steps N]
"""
import argparse

import torch
from torch import nn

torch.set_num_threads(1)


def model(of_checkpoint=False):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 16))
    if of_checkpoint:
        for p in net.parameters():
            p.data.copy_(p.data.bfloat16())
    return net


def train(net, optimizer, steps, after=lambda: None):
    data = torch.Generator().manual_seed(1)
    for _ in range(steps):
        x = torch.randn(32, 16, generator=data)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
        loss = nn.functional.mse_loss(y.float(), x.roll(1, 1))
        loss.backward()
        optimizer.step()
        after()
        print(loss.item())


def assigned(steps, low):
    """The weights are replaced by their rounding to bf16."""
    net = model()

    def after():
        for p in net.parameters():
            p.data = p.data.to(low[0]).float()

    train(net, torch.optim.SGD(net.parameters(), lr=0.01), steps, after)


def copied(steps, low):
    """An fp16 copy of the weights is copied back into them, in a hook of the step. Most of the update is lost."""
    net = model()

    def back(*_):
        for p in net.parameters():
            p.data.copy_(p.data.to(low[1]))

    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    optimizer.register_step_post_hook(back)
    train(net, optimizer, steps)


class Masters(torch.optim.Optimizer):
    """SGD on fp32 copies; the parameters are fp32 too and hold the copies' rounding to `low`."""

    def __init__(self, parameters, low):
        super().__init__(parameters, {})
        self.low = low
        self.copies = [p.detach().clone() for p in self.param_groups[0]["params"]]

    @torch.no_grad()
    def step(self):
        for p, copy in zip(self.param_groups[0]["params"], self.copies):
            if self.low is not torch.bfloat16:
                copy = p
            copy.sub_(0.01 * p.grad)
            p.copy_(copy.to(torch.bfloat16))


def working_copy(steps, low):
    """Weights that hold bf16 values; their masters are lost in the broken one."""
    net = model()
    train(net, Masters(net.parameters(), torch.bfloat16 if low[0] is torch.float32 else None), steps)


def checkpoint(steps, _):
    """Weights from a bf16 checkpoint, of which one layer is frozen and another learns nothing in the first steps."""
    net = model(of_checkpoint=True)
    for p in net[1].parameters():
        p.requires_grad = False
    optimizer = torch.optim.AdamW([{"params": net[0].parameters()}, {"params": net[3].parameters(), "lr": 0.0}])
    train(net, optimizer, steps, lambda: optimizer.param_groups[1].update(lr=1e-3))


def quantised(steps, _):
    """Quantisation-aware training: the forward reads rounded weights, and the weights return before the step."""
    net = model()
    parameters = list(net.parameters())
    kept = []

    def round_all(*_):
        kept[:] = [p.detach().clone() for p in parameters]
        for p in parameters:
            p.data.copy_(p.data.bfloat16())

    class Restoring(torch.optim.SGD):
        def step(self, closure=None):
            for p, k in zip(parameters, kept):
                p.data.copy_(k)
            return super().step(closure)

    net.register_forward_pre_hook(round_all)
    train(net, Restoring(parameters, lr=0.01), steps)


def signs(steps, _):
    """Weights on a grid, which move by a step of the grid, hold few bits in fp32 too."""
    net = model()
    for p in net.parameters():
        p.data.mul_(64).round_().div_(64)

    class Signs(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self):
            for p in self.param_groups[0]["params"]:
                p.sub_(2.0 ** -6 * p.grad.sign())

    train(net, Signs(net.parameters(), {}), steps)


BROKEN = {"assigned": assigned, "copied": copied, "working-copy": working_copy}
CASES = BROKEN | {"checkpoint": checkpoint, "quantised": quantised, "signs": signs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    given = parser.parse_args()
    low = (torch.bfloat16, torch.float16) if given.broken else (torch.float32, torch.float32)
    CASES[given.case](given.steps, low)


if __name__ == "__main__":
    main()
