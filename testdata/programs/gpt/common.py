"""Shared by the programs of this folder: text, model, batches, options and results. Plain torch, 1.13 or 2.x."""
import argparse
import contextlib
import gc
import json
import math
import os
import struct

import torch
import torch.distributed  # not loaded by torch itself everywhere
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

CONTEXT = 32
WIDTH = 64


def load_text():
    """The text as token numbers, and the size of its alphabet."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "text.txt"), encoding="utf-8") as f:
        text = f.read()
    alphabet = sorted(set(text))
    number = {character: i for i, character in enumerate(alphabet)}
    return torch.tensor([number[c] for c in text]), len(alphabet)


class Batches:
    """Random windows of the text, from a generator of its own; each rank draws other ones."""

    def __init__(self, tokens, seed, rank=0, size=4):
        self.tokens, self.size = tokens, size
        self.generator = torch.Generator().manual_seed(1000 * seed + rank)

    def next(self):
        starts = torch.randint(len(self.tokens) - CONTEXT, (self.size,), generator=self.generator).tolist()
        return (torch.stack([self.tokens[s:s + CONTEXT] for s in starts]),
                torch.stack([self.tokens[s + 1:s + 1 + CONTEXT] for s in starts]))


class Attention(nn.Module):
    """Causal self-attention, written out or through scaled_dot_product_attention."""

    def __init__(self, width, heads, dropout, fused):
        super().__init__()
        self.heads, self.dropout, self.fused = heads, dropout, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mask = torch.ones(CONTEXT, CONTEXT).triu(1).bool()  # no buffer: old gloo cannot broadcast a bool

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = (t.reshape(batch, time, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        p = self.dropout if self.training else 0.0
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
            weights = scores.masked_fill(self.mask[:time, :time], float("-inf")).softmax(-1)
            y = F.dropout(weights, p, self.training) @ v
        return self.out(y.transpose(1, 2).reshape(batch, time, width))


class FourierMix(nn.Module):
    """Filters each channel along time in the frequency domain, in fp32 as torch's FFT demands."""

    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(CONTEXT // 2 + 1, width))

    def forward(self, x):
        spectrum = torch.fft.rfft(x.float(), dim=1)
        return torch.fft.irfft(spectrum * self.gain, n=x.shape[1], dim=1).to(x.dtype)


class Block(nn.Module):
    def __init__(self, width, heads, dropout, fused, fourier=False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout, fused)
        self.fourier = FourierMix(width) if fourier else None
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        if self.fourier is not None:
            x = x + self.fourier(x)
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class FrozenBias(nn.Module):
    """A table that is never trained and kept in 16 bits, added to the features of its block."""

    def __init__(self, width, dtype):
        super().__init__()
        self.table = nn.Parameter((0.1 * torch.randn(width, width)).to(dtype), requires_grad=False)

    def forward(self, x):
        return x + F.linear(x.to(self.table.dtype), self.table).to(x.dtype)


class MixedBlock(Block):
    """Trainable fp32 and frozen bf16 in one group: its all-gather packs both as bytes."""

    def __init__(self, width, dtype):
        super().__init__(width, 4, 0.0, False)
        self.frozen = FrozenBias(width, dtype)

    def forward(self, x):
        return self.frozen(super().forward(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, width=WIDTH, layers=2, heads=4, dropout=0.0, attention="explicit",
                 checkpointing="", fourier=False, block=None):
        super().__init__()
        self.checkpointing = checkpointing
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(CONTEXT, width)
        make = block or (lambda: Block(width, heads, dropout, attention == "sdpa", fourier))
        self.blocks = nn.ModuleList(make() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def features(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            if self.checkpointing and self.training:
                x = checkpoint(block, x, use_reentrant=self.checkpointing == "reentrant")
            else:
                x = block(x)
        return self.norm(x)

    def forward(self, tokens):
        return self.head(self.features(tokens))


def loss_of(logits, targets):
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def make_optimizer(name, parameters, rate=2e-3):
    """"adamw", "adamw-foreach", "adamw-fused", "sgd", "sgd-fused", "rmsprop", ..."""
    kind, _, variant = name.partition("-")
    options = {variant: True} if variant else {}
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=10 * rate, momentum=0.9, **options)
    classes = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop,
               "adagrad": torch.optim.Adagrad, "adamax": torch.optim.Adamax, "nadam": torch.optim.NAdam}
    return classes[kind](parameters, lr=rate, **options)


def base_parser(description, steps):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--precision", choices=("low", "fp32", "fp32-copies"), default="low",
                        help="fp32: no autocast, no scaler, no 16-bit tensor anywhere; fp32-copies: and casts, which do "
                             "nothing then, copy")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip-steps", default="", help="steps without an update, e.g. 0,1,12")
    parser.add_argument("--save", default="", help="safetensors file for the result; %%r is the rank, %%n the case")
    parser.add_argument("--decisions", default="", help="the routing in case moe: low writes this file, fp32 reads it")
    return parser


LIBRARY = []  # keeps the registration alive


def let_casts_copy():
    """x.to(float32) of an fp32 tensor gives x; from now on it gives a copy, with a gradient node as in 16 bits."""
    def cast(x, dtype, non_blocking=False, copy=False, memory_format=None):
        return torch.ops.aten._to_copy(x, dtype=dtype, non_blocking=non_blocking, memory_format=memory_format)

    LIBRARY.append(torch.library.Library("aten", "IMPL"))
    LIBRARY[0].impl("to.dtype", cast, "AutogradCPU")


class Run:
    """One training run: its options, its losses, and what it leaves on disk."""

    def __init__(self, options, rank=0, case=""):
        self.low = options.precision == "low"
        self.steps, self.seed, self.rank = options.steps, options.seed, rank
        self.skipped = {int(s) for s in options.skip_steps.split(",") if s}
        self.path = options.save.replace("%r", str(rank)).replace("%n", case)
        self.losses, self.decisions = [], []
        self.decisions_path = options.decisions
        if self.decisions_path and not self.low:
            with open(self.decisions_path, encoding="utf-8") as f:
                self.decisions = json.load(f)
        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        if options.precision == "fp32-copies" and not LIBRARY:
            let_casts_copy()
        self.tokens, self.vocabulary = load_text()

    def batches(self, size=4):
        return Batches(self.tokens, self.seed, self.rank, size)

    def dtype(self, low):
        """A 16-bit type in the low-precision run, fp32 in the other."""
        return low if self.low else torch.float32

    def autocast(self, dtype=torch.bfloat16):
        return torch.autocast("cpu", dtype=dtype) if self.low else contextlib.nullcontext()

    def updates(self, step):
        return step not in self.skipped

    def report(self, step, loss, skipped=False, scale=None):
        """One line a step on rank 0: exact, because the digits of repr() name one double only."""
        value = float(loss.detach())
        self.losses.append(value)
        if self.rank == 0:
            note = "" if scale is None else f" scale {scale:g}"
            print(f"step {step} loss {value!r} {value.hex()}{note}{' skipped' if skipped else ''}", flush=True)

    def largest(self, scores, count):
        """The `count` largest of each row and their places; an fp32 run takes the places of the recorded run."""
        if not self.decisions_path:
            return scores.topk(count, -1)
        if self.low:
            values, places = scores.topk(count, -1)
            self.decisions.append(places.tolist())
            return values, places
        places = torch.tensor(self.decisions.pop(0))
        return scores.gather(-1, places), places

    def finish(self, model, *optimizers):
        if self.decisions_path and self.low:
            with open(self.decisions_path, "w", encoding="utf-8") as f:
                json.dump(self.decisions, f)
        if self.path:
            save(self.path, dict(model.named_parameters()), optimizers, self.losses)


def local(tensor):
    """This rank's shard of a DTensor; any other tensor as it is."""
    return getattr(tensor, "_local_tensor", tensor)


def save(path, named, optimizers, losses):
    """Parameters, "grad/NAME", "optim/NAME.key" (shards of this rank, F32) and "losses" (F64) as safetensors.

    A parameter that only an optimizer knows is called after its place there: optimizer0.group0.param3.
    """
    named = dict(named)
    known = {id(p) for p in named.values()}
    for i, optimizer in enumerate(optimizers):
        for g, group in enumerate(optimizer.param_groups):
            for k, p in enumerate(group["params"]):
                if id(p) not in known:
                    named[f"optimizer{i}.group{g}.param{k}"] = p
                    known.add(id(p))
    tensors = {}
    for name, p in named.items():
        tensors[name] = local(p)
        if p.grad is not None:
            tensors["grad/" + name] = local(p.grad)
        for optimizer in optimizers:
            for key, value in optimizer.state.get(p, {}).items():
                if torch.is_tensor(value) and value.is_floating_point() and value.dim() > 0:
                    tensors[f"optim/{name}.{key}"] = local(value)
    write_safetensors(path, tensors, losses)


def write_safetensors(path, tensors, losses):
    header, blobs, end = {}, [], 0
    items = [(n, "F32", list(t.shape), t) for n, t in sorted(tensors.items())]
    for name, dtype, shape, tensor in [("losses", "F64", [len(losses)], None)] + items:
        if tensor is None:
            blob = struct.pack(f"<{len(losses)}d", *losses)
        else:
            dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
            blob = dense.float().cpu().contiguous().numpy().tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(blob)]}
        blobs.append(blob)
        end += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def start_ranks(store=""):
    """Joins the other ranks of torchrun or mpirun with gloo; returns the number of this one."""
    rank = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
    world = int(os.environ.get("WORLD_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1")))
    method = "file://" + os.path.abspath(store) if store else "env://"
    torch.distributed.init_process_group("gloo", init_method=method, rank=rank, world_size=world)
    return rank


def stop_ranks():
    """Leaves the group in order: first what still holds it, which is in cycles, then the group itself."""
    torch.distributed.barrier()
    gc.collect()
    torch.distributed.destroy_process_group()
