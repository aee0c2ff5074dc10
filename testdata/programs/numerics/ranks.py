"""The cases with two ranks: torchrun --standalone --nproc-per-node 2 cases.py --case skip-desync."""
import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))


def join(run):
    dist.init_process_group("gloo")
    run.generator.manual_seed(1000 + 10 * run.seed + dist.get_rank())
    return dist.get_rank()


def leave(model, number):
    """Prints by how much the replicas differ."""
    flat = torch.cat([p.detach().float().flatten() for p in model.parameters()])
    other = flat.clone()
    dist.broadcast(other, 0)
    print(f"{number} rank {dist.get_rank()} apart {(flat - other).abs().max().item():.6g}\n", end="", flush=True)
    dist.barrier()
    gc.collect()  # what still holds the group is in cycles
    dist.destroy_process_group()


class SharedScaler(torch.amp.GradScaler):
    """All ranks skip what one of them must skip."""

    def _unscale_grads_(self, *arguments):
        found = super()._unscale_grads_(*arguments)
        for flag in found.values():
            dist.all_reduce(flag, dist.ReduceOp.MAX)
        return found


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad.div_(dist.get_world_size())


def skip_desync(run):
    """Each rank looks at its own half of the gradients, and one of them overflows."""
    rank, model = join(run), Net()
    with torch.no_grad():
        model.second.weight.mul_(100)
    halves = [[*model.first.parameters(), *model.norm.parameters()], list(model.second.parameters())]
    optimizer = torch.optim.SGD(halves[rank], lr=1e-4)
    scaler = (torch.amp.GradScaler if run.buggy else SharedScaler)("cpu", init_scale=2.0 ** 9, enabled=run.low)
    for step in range(run.steps):
        x = run.normal(16, 16)
        with run.autocast(torch.float16):
            y = model(x)
        loss = F.mse_loss(y.float(), x[:, :4])
        model.zero_grad()
        scaler.scale(loss).backward()
        average_gradients(model)
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        for half, owner in zip(halves, (0, 1)):
            for p in half:
                dist.broadcast(p.data, owner)
        note = "skipped" if scaler.get_scale() < before else ""
        print(f"step {step} rank {rank} loss {loss.item():.6g} scale {before:g} {note}\n", end="", flush=True)
    leave(model, "end")


def replica_drift(run):
    """Gradients travel in bf16, but each rank averages its own unrounded one with the other's: replicas part."""
    rank, model = join(run), Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(run.steps):
        optimizer.zero_grad()
        for _ in range(3):
            x = run.normal(16, 16)
            with run.autocast():
                y = model(x)
            loss = F.mse_loss(y.float(), x[:, :4]) / 3
            loss.backward()
        for p in model.parameters():
            sent = p.grad.to(torch.bfloat16 if run.low else torch.float32)
            parts = [torch.empty_like(sent) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, sent)
            if run.buggy:
                parts[rank] = p.grad
            p.grad = torch.stack([part.float() for part in parts]).mean(0)
        optimizer.step()
        print(f"step {step} rank {rank} loss {loss.item():.6g}\n", end="", flush=True)
    leave(model, "end")


CASES = {"skip-desync": skip_desync, "replica-drift": replica_drift}
