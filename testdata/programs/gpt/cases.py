"""Ways to train the GPT that are more than a choice of options; `amp_gpt.py --case NAME` runs one of them."""
import os
import sys
import threading

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from common import GPT, WIDTH, Attention, Block, loss_of, make_optimizer

BF16 = torch.bfloat16


def fit(run, model, optimizers, forward=None, dtype=BF16, clip=0.0, before_step=None, after_step=None):
    """The plain loop: autocast forward, backward, step of every optimizer."""
    batches = run.batches()
    for step in range(run.steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        inputs, targets = batches.next()
        with run.autocast(dtype):
            loss = loss_of((forward or model)(inputs), targets)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if before_step:
            before_step(step)
        for optimizer in optimizers:
            optimizer.step()
        if after_step:
            after_step(step)
        run.report(step, loss)
    run.finish(model, *optimizers)


def pure(run, optimizer_of=lambda parameters: make_optimizer("adamw", parameters)):
    """bf16 weights, gradients and moments: no fp32 copy of anything."""
    model = GPT(run.vocabulary, dropout=0.1).to(run.dtype(BF16))
    optimizer = optimizer_of(model.parameters())
    batches = run.batches()
    for step in range(run.steps):
        optimizer.zero_grad()
        inputs, targets = batches.next()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


def fused_masters(run):
    """bf16 weights whose optimizer keeps fp32 masters and writes the weights in the same op."""
    sys.path.insert(0, os.environ["MP_OPTIM"])
    import mp_optim
    pure(run, lambda parameters: mp_optim.AdamW(parameters, lr=1e-3))


def masters(run):
    """bf16 weights, fp32 masters, a static loss scale, and one injected overflow that skips its step."""
    model = GPT(run.vocabulary, dropout=0.1)
    master = [p.detach().clone() for p in model.parameters()]
    model.to(run.dtype(BF16))
    optimizer = make_optimizer("adamw", master)
    scale = 1024.0 if run.low else 1.0
    batches = run.batches()
    for step in range(run.steps):
        inputs, targets = batches.next()
        loss = loss_of(model(inputs), targets)
        loss.backward(torch.tensor(scale))
        if run.low and step == 7:
            model.head.weight.grad[3, 5] = float("inf")
        finite = all(bool(p.grad.isfinite().all()) for p in model.parameters()) and run.updates(step)
        for m, p in zip(master, model.parameters()):
            m.grad = p.grad.float() / scale
            p.grad = None
        if finite:
            optimizer.step()
            for m, p in zip(master, model.parameters()):
                p.data = m.data.to(p.dtype)
        run.report(step, loss, skipped=not finite)
    run.finish(model, optimizer)


def two_optimizers(run):
    """AdamW moves the matrices, SGD everything else."""
    model = GPT(run.vocabulary, dropout=0.1)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    fit(run, model, [make_optimizer("adamw", matrices), make_optimizer("sgd", vectors)])


def moving_average(run):
    """An average of the weights: evaluated in inference mode while it stands in for them, kept after step 20."""
    model = GPT(run.vocabulary)
    average = [p.detach().clone() for p in model.parameters()]
    tokens, targets = run.batches().next()

    def swap():
        with torch.no_grad():
            for p, a in zip(model.parameters(), average):
                kept = p.detach().clone()
                p.copy_(a)
                a.copy_(kept)

    def evaluate(step):
        with torch.no_grad():
            for p, a in zip(model.parameters(), average):
                a.mul_(0.8).add_(p, alpha=0.2)
        if step % 10 == 9:
            swap()
            model.eval()
            with torch.inference_mode(), run.autocast():
                print(f"evaluation {float(loss_of(model(tokens), targets))!r}", flush=True)
            model.train()
            if step < 20:
                swap()

    fit(run, model, [make_optimizer("adamw", model.parameters())], after_step=evaluate)


def lbfgs(run):
    """A line search decides by values that left the tensors as Python floats."""
    model = GPT(run.vocabulary, layers=1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, history_size=5)
    inputs, targets = run.batches(8).next()
    for step in range(min(run.steps, 8)):
        def closure():
            optimizer.zero_grad()
            with run.autocast():
                loss = loss_of(model(inputs), targets)
            loss.backward()
            return loss
        run.report(step, optimizer.step(closure))
    run.finish(model)


class Experts(nn.Module):
    """Two of four experts for each token, chosen by a router and reached by index."""

    def __init__(self, width, largest, count=4, chosen=2):
        super().__init__()
        self.chosen, self.largest = chosen, largest
        self.router = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(count))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weights, chosen = self.largest(self.router(flat).softmax(-1), self.chosen)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows, place = (chosen == i).nonzero(as_tuple=True)
            y = expert(flat[rows]) * weights[rows, place].unsqueeze(-1)
            out = out.index_add(0, rows, y.to(out.dtype))
        return out.reshape(x.shape)


class ExpertBlock(nn.Module):
    def __init__(self, width, largest):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.experts = Attention(width, 4, 0.0, False), Experts(width, largest)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.experts(self.norm2(x))


def mixture(run):
    model = GPT(run.vocabulary, block=lambda: ExpertBlock(WIDTH, run.largest))
    fit(run, model, [make_optimizer("adamw", model.parameters())])


def muon(run):
    """torch.optim.Muon orthogonalises the momentum in bfloat16, whatever the precision of the rest."""
    model = GPT(run.vocabulary)
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and n.startswith("blocks.")]
    rest = [p for n, p in model.named_parameters() if not (p.dim() == 2 and n.startswith("blocks."))]
    fit(run, model, [torch.optim.Muon(matrices, lr=5e-3), make_optimizer("adamw", rest)])


def numpy_write(run):
    """Halves a weight through its numpy view: no torch op takes part in the write."""
    model = GPT(run.vocabulary)

    def halve(step):
        if step == 9:
            view = model.head.weight.detach().numpy()
            numpy.multiply(view, 0.5, out=view)

    fit(run, model, [make_optimizer("adamw", model.parameters())], after_step=halve)


def byte_view(run):
    """Sends the gradients through one packed byte buffer, as communication layers do."""
    model = GPT(run.vocabulary, layers=1).to(run.dtype(BF16))
    optimizer = make_optimizer("adamw", model.parameters())
    batches = run.batches()
    for step in range(run.steps):
        optimizer.zero_grad()
        inputs, targets = batches.next()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        gradients = [p.grad for p in model.parameters()]
        packed = torch.cat([g.reshape(-1).view(torch.uint8) for g in gradients])
        sizes = [g.numel() * g.element_size() for g in gradients]
        for g, piece in zip(gradients, packed.clone().split(sizes)):
            g.copy_(piece.view(g.dtype).view(g.shape))
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


class Float8Linear(nn.Linear):
    """Weights rounded through float8_e4m3fn, gradients passed straight through."""

    low = True

    def forward(self, x):
        rounded = self.weight.to(torch.float8_e4m3fn).to(self.weight.dtype) if self.low else self.weight
        return F.linear(x, self.weight + (rounded - self.weight).detach(), self.bias)


def float8(run):
    model = GPT(run.vocabulary)
    for block in model.blocks:
        linear = Float8Linear(WIDTH, 4 * WIDTH)
        linear.low = run.low
        block.up = linear
    fit(run, model, [make_optimizer("adamw", model.parameters())])


def hooks(run):
    """Hooks on modules and on gradients that change what passes."""
    model = GPT(run.vocabulary, dropout=0.1)
    model.blocks[0].register_forward_hook(lambda module, args, out: out * 0.75)
    model.blocks[1].register_forward_pre_hook(lambda module, args: (args[0] + 0.125,))
    model.norm.register_full_backward_hook(lambda module, gin, gout: (gin[0] * 0.5,))
    model.head.weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
    fit(run, model, [make_optimizer("adamw", model.parameters())])


def threads(run):
    """Forward and backward run in a thread of their own, one at a time."""
    model = GPT(run.vocabulary, dropout=0.1)
    optimizer = make_optimizer("adamw", model.parameters())
    batches = run.batches()
    for step in range(run.steps):
        optimizer.zero_grad()
        losses = []

        def work():
            for _ in range(2):
                inputs, targets = batches.next()
                with run.autocast():
                    losses.append(loss_of(model(inputs), targets))
                losses[-1].backward()

        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        optimizer.step()
        run.report(step, losses[0])
    run.finish(model, optimizer)


def flat_buffer(run):
    """One flat fp32 shard; a working copy that is filled before the forward and freed after the backward."""
    model = GPT(run.vocabulary)
    shapes = [p.shape for p in model.parameters()]
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    working = torch.empty(flat.numel(), dtype=run.dtype(BF16))
    optimizer = make_optimizer("adamw", [flat])
    storage = working.untyped_storage() if hasattr(working, "untyped_storage") else working.storage()
    full_size = storage.size()

    def fill():
        storage.resize_(full_size)
        working.copy_(flat)

    pieces = working.split([s.numel() for s in shapes])
    for p, piece, shape in zip(model.parameters(), pieces, shapes):
        p.data = piece.view(shape)
    batches = run.batches()
    for step in range(run.steps):
        fill()
        inputs, targets = batches.next()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        storage.resize_(0)
        flat.grad = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).float()
        for p in model.parameters():
            p.grad = None
        optimizer.step()
        run.report(step, loss)
    fill()
    run.finish(model, optimizer)


def weight_norm(run):
    model = GPT(run.vocabulary)
    for block in model.blocks:
        block.up = torch.nn.utils.weight_norm(block.up)
    fit(run, model, [make_optimizer("adamw", model.parameters())])


def spectral_norm(run):
    """A power iteration keeps its vectors in buffers and moves them in every forward."""
    model = GPT(run.vocabulary)
    for block in model.blocks:
        block.up = torch.nn.utils.parametrizations.spectral_norm(block.up)
    fit(run, model, [make_optimizer("adamw", model.parameters())])


class ScriptedPart(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(x)
        for _ in range(2):
            y = torch.tanh(y) * 1.5
        return x + self.down(y)


def torchscript(run):
    """The MLP of each block is TorchScript."""
    model = GPT(run.vocabulary)
    for block in model.blocks:
        block.up, block.down = torch.jit.script(ScriptedPart(WIDTH)), nn.Identity()
    fit(run, model, [make_optimizer("adamw", model.parameters())])


def compile_disabled(run):
    """torch.compile with the compiler switched off by its own variable."""
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    model = GPT(run.vocabulary, dropout=0.1)
    fit(run, model, [make_optimizer("adamw", model.parameters())], forward=torch.compile(model))


def custom_op(run):
    """An op of the program's own, registered after training has begun."""
    model = GPT(run.vocabulary)

    def register():
        @torch.library.custom_op("keeper::soft_sign", mutates_args=())
        def soft_sign(x: torch.Tensor) -> torch.Tensor:
            return x / (1 + x.abs())

        def backward(ctx, gradient):
            x, = ctx.saved_tensors
            return gradient / (1 + x.abs()).square()

        soft_sign.register_autograd(backward, setup_context=lambda ctx, inputs, output:
                                    ctx.save_for_backward(inputs[0]))
        model.blocks[1].register_forward_hook(lambda module, args, out: out + soft_sign(out))

    fit(run, model, [make_optimizer("adamw", model.parameters())],
        after_step=lambda step: register() if step == 4 else None)


def sparse_embedding(run):
    """Sparse gradients for the token table."""
    model = GPT(run.vocabulary)
    model.tokens = nn.Embedding(run.vocabulary, WIDTH, sparse=True)
    fit(run, model, [torch.optim.SGD(model.parameters(), lr=0.05)])


class KernelDropout(nn.Module):
    """Dropout by the one op that GPUs use, which returns its mask."""

    def forward(self, x):
        return torch.native_dropout(x, 0.1, True)[0]


def native_dropout(run):
    def block():
        made = Block(WIDTH, 4, 0.0, False)
        made.drop = KernelDropout()
        return made
    model = GPT(run.vocabulary, block=block)
    fit(run, model, [make_optimizer("adamw", model.parameters())])


def autocast_outside(run):
    """One region around the whole loop: autocast keeps its first copies of the weights."""
    model = GPT(run.vocabulary)
    optimizer = make_optimizer("adamw", model.parameters())
    batches = run.batches()
    with run.autocast():
        for step in range(run.steps):
            optimizer.zero_grad()
            inputs, targets = batches.next()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
            run.report(step, loss)
    run.finish(model, optimizer)


CASES = {
    "pure-bf16": pure, "fused-masters": fused_masters, "masters": masters, "two-optimizers": two_optimizers,
    "ema-inference": moving_average,
    "lbfgs": lbfgs, "moe": mixture, "muon": muon, "numpy-write": numpy_write, "byte-view": byte_view,
    "float8": float8, "hooks": hooks, "python-threads": threads, "flat-buffer": flat_buffer,
    "weight-norm": weight_norm, "spectral-norm": spectral_norm, "torchscript": torchscript,
    "compile-disabled": compile_disabled, "custom-op": custom_op, "sparse-embedding": sparse_embedding,
    "native-dropout": native_dropout, "autocast-outside": autocast_outside,
}
