"""A head whose gradient is added up over chunks in bf16. https://github.com/linkedin/Liger-Kernel/pull/830"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

CHUNK, WORDS, WIDTH = 16, 128, 32


class Chunked(torch.autograd.Function):
    """Mean cross entropy of a linear head; both gradients are made in forward, a chunk of rows at a time."""

    @staticmethod
    def forward(ctx, hidden, weight, label, kind):
        total = torch.zeros((), dtype=torch.float32)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight, dtype=kind)
        for first in range(0, len(hidden), CHUNK):
            rows, right = hidden[first:first + CHUNK], label[first:first + CHUNK]
            logits = (rows @ weight.t()).float()
            total += F.cross_entropy(logits, right, reduction="sum")
            slope = ((logits.softmax(-1) - F.one_hot(right, WORDS)) / len(hidden)).to(hidden.dtype)
            grad_hidden[first:first + CHUNK] = slope @ weight
            grad_weight += slope.t() @ rows
        ctx.save_for_backward(grad_hidden, grad_weight.to(weight.dtype))
        return total / len(hidden)

    @staticmethod
    def backward(ctx, grad):
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad * grad_hidden, grad * grad_weight, None, None


class Head(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.weight, self.kind = nn.Parameter(torch.randn(WORDS, WIDTH) / WIDTH ** 0.5), kind

    def forward(self, hidden, label):
        return Chunked.apply(hidden, self.weight.bfloat16(), label, self.kind)


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words, self.body, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH), Head(kind)

    def forward(self, tokens, label):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.body(F.gelu(self.words(tokens)))
        return self.head(hidden, label)


def departure(model, tokens, label):
    """How far the head's gradient is from one that is added up in fp32."""
    grads = []
    for kind in (model.head.kind, torch.float32):
        other = Head(kind)
        other.load_state_dict(model.head.state_dict())
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
            hidden = model.body(F.gelu(model.words(tokens)))
        other(hidden, label).backward()
        grads.append(other.weight.grad)
    return ((grads[0] - grads[1]).norm() / grads[1].norm()).item()


run = Training()
model = Model(torch.float32 if run.fixed else torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    tokens, label = run.integers(WORDS, 1024), run.integers(WORDS, 1024)
    run.update(model(tokens, label), optimizer)
run.end(departure(model, tokens, label) > 3 * 0.425 * 2 ** -8, model.parameters())
