"""Ways to keep fp32 master weights beside 16-bit ones, as libraries write them, and each one broken.

    masters.py --case NAME [--broken] [--steps N]

A healthy case holds fp32 weights from step to step and rounds them into the model. A broken one runs, its loss falls,
and nothing holds the bits that the rounding takes away.
"""
import argparse
import os

import torch
from torch import nn

LR = 2e-5
torch.set_num_threads(1)


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm, self.up, self.down = Norm(size), nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, size=64):
        super().__init__()
        self.blocks = nn.ModuleList(Block(size) for _ in range(2))
        self.norm, self.head = Norm(size), nn.Linear(size, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class WithPositions(Model):
    """Its table of positions is full of rows of ones, as the gains of its norms are."""

    def __init__(self, size=64):
        super().__init__(size)
        angles = torch.linspace(0, 9, 8192)[:, None] / 10000 ** (torch.arange(size // 2) / (size // 2))
        self.table = nn.Parameter(torch.cat([angles.sin(), angles.cos()], 1))

    def forward(self, x):
        return super().forward(x + self.table[:len(x)])


def model_in(dtype):
    torch.manual_seed(0)
    return Model().to(dtype)


def batches(steps, dtype):
    torch.manual_seed(1)
    for _ in range(steps):
        yield torch.randn(32, 64).to(dtype), torch.randint(10, (32,))


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x).float(), y)


def adam(weight, gradient, state):
    """AdamW in the dtype of `weight`, in place."""
    if not state:
        state.update(step=0, m=torch.zeros_like(weight), v=torch.zeros_like(weight))
    state["step"] += 1
    state["m"].lerp_(gradient, 0.1)
    state["v"].mul_(0.95).addcmul_(gradient, gradient, value=0.05)
    m = state["m"] / (1 - 0.9 ** state["step"])
    v = state["v"] / (1 - 0.95 ** state["step"])
    weight.sub_(m / (v.sqrt() + 1e-6), alpha=LR)


class Calls(torch.optim.Optimizer):
    """An optimizer whose step() is `update`."""

    def __init__(self, parameters, update):
        super().__init__(parameters, {"lr": LR})
        self.update = update

    @torch.no_grad()
    def step(self):
        self.update()


def train(model, optimizer, steps):
    for x, y in batches(steps, torch.bfloat16):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        print(loss.item())


def apex_o2(steps, broken):
    """apex O2: an fp16 model, a list of fp32 masters, a loss scale."""
    scale = 1024.0
    model = model_in(torch.float16)
    weights = list(model.parameters())
    masters = [w.detach().clone() if broken else w.detach().clone().float() for w in weights]
    for m in masters:
        m.requires_grad_(True)
    optimizer = torch.optim.SGD(masters, lr=1e-4)
    for x, y in batches(steps, torch.float16):
        loss = loss_of(model, x, y)
        (loss * scale).backward()
        for m, w in zip(masters, weights):
            if m.grad is None:
                m.grad = torch.empty_like(m)
            m.grad.copy_(w.grad)
            m.grad.mul_(1 / scale)
            w.grad = None
        optimizer.step()
        with torch.no_grad():
            for m, w in zip(masters, weights):
                w.copy_(m)
        print(loss.item())


def flatten(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def flat_buffer(steps, broken):
    """One 16-bit buffer that the parameters are views of, one fp32 buffer that the optimizer moves."""
    model = model_in(torch.bfloat16)
    weights = list(model.parameters())
    low = flatten(weights)
    gradient = torch.zeros_like(low)
    at = 0
    for w in weights:
        w.data = low[at:at + w.numel()].view_as(w)
        w.grad = gradient[at:at + w.numel()].view_as(w)
        at += w.numel()
    main = nn.Parameter(low.float())
    optimizer = torch.optim.AdamW([main], lr=LR)
    for x, y in batches(steps, torch.bfloat16):
        gradient.zero_()
        loss = loss_of(model, x, y)
        loss.backward()
        if broken:  # "the buffers may have been loaded"
            main.data.copy_(low)
        main.grad = gradient.float()
        optimizer.step()
        low.copy_(main.data)
        print(loss.item())


def zero_bf16(steps, broken):
    """DeepSpeed's BF16_Optimizer: fp32 partitions, gradients accumulated in fp32, fragments linked back."""
    model = model_in(torch.bfloat16)
    weights = list(model.parameters())
    half = len(weights) // 2
    partitions, links = [], []
    for group in (weights[:half], weights[half:]):
        low = flatten(group)
        high = low if broken else low.clone().float()
        accumulated = torch.zeros(high.numel())
        at = 0
        for w in group:
            links.append((w, high.narrow(0, at, w.numel()), accumulated.narrow(0, at, w.numel())))
            at += w.numel()
        high.requires_grad_(True)
        high.grad = accumulated.to(high.dtype)
        partitions.append((high, accumulated))
    optimizer = torch.optim.AdamW([high for high, _ in partitions], lr=LR)
    for x, y in batches(steps, torch.bfloat16):
        loss = loss_of(model, x, y)
        for _ in range(2):  # micro-batches
            (loss_of(model, x, y) / 2).backward()
            for w, _, g in links:
                g.add_(w.grad.reshape(-1))
                w.grad = None
        norm = torch.sqrt(sum(a.square().sum() for _, a in partitions))
        for high, accumulated in partitions:
            accumulated.mul_(torch.clamp(1.0 / (norm + 1e-6), max=1.0))
            high.grad = accumulated.to(high.dtype)
        optimizer.step()
        with torch.no_grad():
            for w, high, _ in links:
                w.data.copy_(high.detach().view_as(w))
            for _, accumulated in partitions:
                accumulated.zero_()
        print(loss.item())


def sharded(steps, broken):
    """ZeRO-1: each rank moves its fp32 shard; the cast shards are gathered into the 16-bit weights."""
    import torch.distributed as dist
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    rank, world = dist.get_rank(), dist.get_world_size()
    model = model_in(torch.bfloat16)
    weights = list(model.parameters())
    low = flatten(weights)
    low = torch.cat([low, low.new_zeros(-low.numel() % world)])
    at = 0
    for w in weights:
        w.data = low[at:at + w.numel()].view_as(w)
        at += w.numel()
    size = low.numel() // world
    mine = slice(rank * size, (rank + 1) * size)
    shard = nn.Parameter(low[mine].float())
    optimizer = torch.optim.AdamW([shard], lr=LR)
    for x, y in batches(steps, torch.bfloat16):
        model.zero_grad(set_to_none=True)
        loss = loss_of(model, x, y)
        loss.backward()
        gradient = flatten([w.grad for w in weights]).float()
        gradient = torch.cat([gradient, gradient.new_zeros(low.numel() - gradient.numel())])
        dist.all_reduce(gradient)
        if broken:
            shard.data = low[mine].float()
        shard.grad = gradient[mine] / world
        optimizer.step()
        dist.all_gather_into_tensor(low, shard.detach().to(torch.bfloat16))
        print(loss.item())
    dist.destroy_process_group()


def foreach(steps, broken):
    """_foreach_copy_ of all masters at once."""
    model = model_in(torch.bfloat16)
    weights = list(model.parameters())
    masters = [w.detach().float() for w in weights]
    states = [{} for _ in weights]

    def update():
        for i, w in enumerate(weights):
            if broken:
                masters[i] = w.detach().float()
            adam(masters[i], w.grad.float(), states[i])
        torch._foreach_copy_(weights, masters)

    train(model, Calls(weights, update), steps)


class Wide(torch.optim.Optimizer):
    """An optimizer that computes in fp32 and writes 16 bits; with `keep`, it keeps its fp32 weights."""

    def __init__(self, parameters, keep):
        super().__init__(parameters, {"lr": LR})
        self.keep = keep

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if self.keep and "master" not in state:
                    state["master"] = p.detach().float()
                wide = state["master"] if self.keep else p.detach().float()
                adam(wide, p.grad.float(), state.setdefault("moments", {}))
                p.data.copy_(wide)


def clones(steps, broken):
    """The optimizer's own fp32 clones in its state; broken: fp32 only inside the step, as many optimizers do."""
    model = model_in(torch.bfloat16)
    train(model, Wide(model.parameters(), keep=not broken), steps)


def positions(steps, broken):
    """As clones, of a model with a table of positions."""
    torch.manual_seed(0)
    model = WithPositions().to(torch.bfloat16)
    train(model, Wide(model.parameters(), keep=not broken), steps)


def assigned(steps, broken):
    """p.data = master.bfloat16(): new memory in every step."""
    model = model_in(torch.bfloat16)
    weights = list(model.parameters())
    masters = [w.detach().float() for w in weights]
    states = [{} for _ in weights]

    def update():
        for i, w in enumerate(weights):
            if broken:
                masters[i] = w.data.float()
            adam(masters[i], w.grad.float(), states[i])
            w.data = masters[i].to(torch.bfloat16)

    train(model, Calls(weights, update), steps)


def post_hook(steps, broken):
    """A hook after each optimizer step rounds the masters; broken: `p = p.float()` rebinds a loop variable."""
    model = model_in(torch.bfloat16)
    pairs = [(nn.Parameter(w.detach().float()), w) for w in model.parameters()]
    if broken:
        for p in model.parameters():
            p = p.to(torch.float32)
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    else:
        optimizer = torch.optim.AdamW([m for m, _ in pairs], lr=LR)

        def rounded(*_):
            with torch.no_grad():
                for m, w in pairs:
                    w.data.copy_(m.data)

        optimizer.register_step_post_hook(rounded)
    for x, y in batches(steps, torch.bfloat16):
        model.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        if not broken:
            for m, w in pairs:
                m.grad = w.grad.float()
        optimizer.step()
        print(loss.item())


def kernel(steps, broken):
    """A fused kernel of an extension: it reads and writes memory, and torch sees none of it."""
    import numpy
    model = model_in(torch.bfloat16)
    weights = list(model.parameters())
    masters = [w.detach().float() for w in weights]
    moments = [(numpy.zeros(w.numel(), numpy.float32), numpy.zeros(w.numel(), numpy.float32)) for w in weights]

    def bits(t):
        return t.detach().view(torch.int16).reshape(-1).numpy().view(numpy.uint16)

    def widened(t):
        return (bits(t).astype(numpy.uint32) << 16).view(numpy.float32)

    number = 0

    def update():
        nonlocal number
        number += 1
        for w, master, (m, v) in zip(weights, masters, moments):
            wide = widened(w) if broken else master.reshape(-1).numpy()
            gradient = widened(w.grad)
            m += numpy.float32(0.1) * (gradient - m)
            v += numpy.float32(0.05) * (gradient * gradient - v)
            wide -= numpy.float32(LR) * (m / (1 - 0.9 ** number) / (numpy.sqrt(v / (1 - 0.95 ** number)) + 1e-6))
            word = wide.view(numpy.uint32)
            bits(w)[:] = ((word + 0x7FFF + ((word >> 16) & 1)) >> 16).astype(numpy.uint16)

    train(model, Calls(weights, update), steps)


def reloaded(steps, broken):
    """An fp32 model that is trained and a 16-bit one that runs, given its weights by load_state_dict.

    Broken: the run was resumed from the 16-bit model's checkpoint, and that model is trained.
    """
    runs = model_in(torch.bfloat16)
    if broken:
        runs.load_state_dict({k: v.clone() for k, v in runs.state_dict().items()})
        trained = runs
    else:
        trained = model_in(torch.float32)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=LR)
    for x, y in batches(steps, torch.bfloat16):
        runs.zero_grad()
        loss = loss_of(runs, x, y)
        loss.backward()
        if not broken:
            for m, w in zip(trained.parameters(), runs.parameters()):
                m.grad = w.grad.float()
        optimizer.step()
        if not broken:
            runs.load_state_dict(trained.state_dict())
        print(loss.item())


CASES = {"apex-o2": apex_o2, "flat-buffer": flat_buffer, "zero-bf16": zero_bf16, "sharded": sharded,
         "foreach": foreach, "clones": clones, "positions": positions, "assigned": assigned, "post-hook": post_hook,
         "kernel": kernel, "reloaded": reloaded}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--steps", type=int, default=9)
    given = parser.parse_args()
    CASES[given.case](given.steps, given.broken)


if __name__ == "__main__":
    main()
