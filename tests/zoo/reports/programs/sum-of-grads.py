"""Gradients of micro-batches are added up in bf16. https://github.com/ISEEKYAN/Megatron-LM/issues/149"""
import numpy
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

MICRO_BATCHES = 16


def backward(model, batches, fixed):
    """Their mean loss and gradients, in fp32; `fixed`: they are added up in fp32 instead of bf16."""
    total, sums = 0.0, [torch.zeros(p.shape) for p in model.parameters()]
    model.zero_grad()
    for i, (x, label) in enumerate(batches, 1):
        loss = F.cross_entropy(model(x.bfloat16()).float(), label) / len(batches)
        loss.backward()
        total += loss.detach()
        if fixed or i == len(batches):
            for s, p in zip(sums, model.parameters()):
                s += p.grad.float()
            model.zero_grad()
    return total, sums


class Adder:
    """A hook that adds gradients to an array and leaves them as they are."""

    def __init__(self, total):
        self.total = total

    def __call__(self, grad):
        self.total += grad.float().numpy()


def norm(grads):
    return numpy.linalg.norm(numpy.concatenate([g.ravel() for g in grads]))


run = Training()
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 16))
masters = [p.detach().clone() for p in model.parameters()]
model.bfloat16()
optimizer = torch.optim.AdamW(masters, lr=1e-3)
exact = [numpy.zeros(p.shape) for p in model.parameters()]
for step in range(run.steps):
    batches = [(run.normal(8, 32), run.integers(16, 8)) for _ in range(MICRO_BATCHES)]
    if step == run.steps - 1:  # adds up what each micro-batch of the last step gives
        for e, p in zip(exact, model.parameters()):
            p.register_hook(Adder(e))
    loss, grads = backward(model, batches, run.fixed)
    for m, g in zip(masters, grads):
        m.grad = g
    optimizer.step()
    with torch.no_grad():
        for m, p in zip(masters, model.parameters()):
            p.copy_(m)
    run.note(loss)
off = abs(norm([g.numpy() for g in grads]) / norm(exact) - 1)
print(f"norm of the gradients off by {off:.3g}")
run.end(off > 1e-5, masters)
