"""Blocks with a 16-bit residual stream and parts in float, as today's language models have; see amp_gpt.py --case.

In low precision `x.float()` is an op with a gradient of its own; in fp32 it is `x`. So the gradients that meet at x
arrive in groups in one run and one by one in the other.
"""
import torch
from torch import nn
from torch.nn import functional as F

from cases import fit
from common import CONTEXT, GPT, WIDTH, loss_of, make_optimizer

BF16 = torch.bfloat16


class RMSNorm(nn.Module):
    """As transformers writes it for Llama, Mistral and Qwen."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * h.to(x.dtype)


def rotated(x):
    """Rotary positions in float."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 0.1 ** torch.arange(half)
    cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
    h = x.float()
    turned = torch.cat((-h[..., half:], h[..., :half]), -1)
    return (h * cos + turned * sin).to(x.dtype)


class LlamaBlock(nn.Module):
    """`qk_norm`: normalised queries and keys, as in Qwen 3. `again`: the queries are used after their rotation too."""

    def __init__(self, width=WIDTH, heads=4, norm=RMSNorm, qk_norm=False, again=False):
        super().__init__()
        self.heads, self.again = heads, again
        self.norm1, self.norm2 = norm(width), norm(width)
        self.q_norm, self.k_norm = (norm(width // heads) if qk_norm else nn.Identity() for _ in range(2))
        self.qk, self.v = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.mask = torch.ones(CONTEXT, CONTEXT).triu(1).bool()

    def attention(self, x):
        batch, time, width = x.shape
        h, v = (f(x).reshape(batch, time, self.heads, -1).transpose(1, 2) for f in (self.qk, self.v))
        q, k = rotated(self.q_norm(h)), rotated(self.k_norm(h))
        scores = (q @ k.transpose(-2, -1) / 4).masked_fill(self.mask[:time, :time], float("-inf"))
        y = scores.softmax(-1) @ v
        if self.again:
            y = y + 0.5 * h
        return self.out(y.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def stream(run, block, **options):
    """A model in bf16, without autocast."""
    model = GPT(run.vocabulary, block=block, **options).to(run.dtype(BF16))
    optimizer = make_optimizer("adamw", model.parameters())
    batches = run.batches()
    for step in range(run.steps):
        optimizer.zero_grad()
        inputs, targets = batches.next()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


class GatedNorm(LlamaBlock):
    """One value is normalised in float and gates itself in 16 bits."""

    def forward(self, x):
        h = self.out(x)
        return x + self.down(self.up(self.norm2(h) * F.silu(h)))


class SharedAttention(nn.Module):
    """Queries, keys and values are one tensor, which autocast casts for each of them."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        h = self.norm(x)
        return x + self.out(F.scaled_dot_product_attention(h, h, h, is_causal=True))


def shared_attention(run):
    model = GPT(run.vocabulary, block=SharedAttention)
    fit(run, model, [make_optimizer("adamw", model.parameters())])


def used_again(run):
    """A weight that matrix products read in 16 bits and the loss reads in fp32 afterwards."""
    model = GPT(run.vocabulary)

    def forward(inputs):
        first = model(inputs)
        second = F.linear(model.features(inputs.flip(1)), model.head.weight)
        return (first + second + F.linear(model.features(inputs), model.head.weight)).float() + \
            model.head.weight.square().mean(1)

    fit(run, model, [make_optimizer("adamw", model.parameters())], forward)


def clip_mixed(run):
    """Clips gradients of two types: their norms are stacked by type first."""
    model = GPT(run.vocabulary, block=lambda: LlamaBlock(norm=nn.LayerNorm)).to(run.dtype(BF16))
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.float()
            module.register_forward_pre_hook(lambda module, args: (args[0].float(),))
            module.register_forward_hook(lambda module, args, out: out.to(run.dtype(BF16)))
    optimizer = make_optimizer("adamw", model.parameters())
    batches = run.batches()
    for step in range(run.steps):
        optimizer.zero_grad()
        inputs, targets = batches.next()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


CASES = {
    "llama": lambda run: stream(run, LlamaBlock),
    "llama-checkpoint": lambda run: stream(run, LlamaBlock, checkpointing="nonreentrant"),
    "llama-checkpoint-reentrant": lambda run: stream(run, LlamaBlock, checkpointing="reentrant"),
    "rms-module": lambda run: stream(run, lambda: LlamaBlock(norm=nn.RMSNorm)),
    "qwen": lambda run: stream(run, lambda: LlamaBlock(qk_norm=True)),
    "rotary-again": lambda run: stream(run, lambda: LlamaBlock(again=True)),
    "gated-norm": lambda run: stream(run, GatedNorm),
    "shared-attention": shared_attention,
    "used-again": used_again,
    "clip-mixed": clip_mixed,
}
