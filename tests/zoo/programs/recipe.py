"""The training loops of the zoo, one for each precision regime, written as PyTorch's documentation writes them.

A program of this folder makes a library's model and its batches; `train` does the rest. `--precision fp32` is the same
training without autocast, scaler or 16-bit tensors.
"""
import argparse
import json
import os
import random
import sys

import numpy
import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "testdata", "programs",
    "gpt"))
import common  # noqa: E402

BF16, FP16 = torch.bfloat16, torch.float16


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--regime", choices=REGIMES, default="bf16-autocast")
    parser.add_argument("--precision", choices=("low", "fp32"), default="low")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip-steps", default="")
    parser.add_argument("--save", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(options.seed)
    numpy.random.seed(options.seed)
    torch.manual_seed(options.seed)
    if options.device == "cuda":  # two runs must have the same bits
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.allow_tf32 = False
    return Run(options)


class Run:
    """The options of one run, its losses, and what it leaves on disk."""

    def __init__(self, options):
        self.name, self.regime, self.steps, self.path = options.name, options.regime, options.steps, options.save
        self.low, self.device = options.precision == "low", options.device
        self.skipped = {int(s) for s in options.skip_steps.split(",") if s}
        self.data = torch.Generator().manual_seed(options.seed)
        self.losses = []
        self.called = None

    def watch(self, model):
        """Notes in the fp32 run which modules are called."""
        if not self.low:
            self.called = set()
            for module in model.modules():
                module.register_forward_hook(lambda module, *_: self.called.add(module))

    @property
    def dtype(self):
        """The dtype of weights and inputs."""
        return BF16 if self.low and self.regime in ("bf16-pure", "bf16-masters") else torch.float32

    def rand(self, *shape):
        return torch.randn(*shape, generator=self.data).to(self.device, self.dtype)

    def integers(self, low, high, *shape):
        return torch.randint(low, high, shape, generator=self.data).to(self.device)

    def report(self, step, loss, skipped=False):
        self.losses.append(float(loss.detach()))
        print(f"step {step} loss {self.losses[-1].hex()}{' skipped' if skipped else ''}", flush=True)

    def finish(self, model, *optimizers):
        if not self.path:
            return
        known = [o for o in optimizers if type(o).__module__.startswith("torch.optim")]  # others pack their state
        common.save(self.path.replace("%r", "0"), dict(model.named_parameters()), known, self.losses)
        updated = {id(p) for o in optimizers for p in o.state}
        ran = [name for name, module in model.named_modules()
               if not any(module.children()) and (self.called is None or module in self.called)
               and any(p.grad is not None or id(p) in updated for p in module.parameters(recurse=False))]
        with open("layers.json", "w", encoding="utf-8") as f:
            json.dump({"ran": ran, "all": [name for name, _ in model.named_modules()]}, f)


def autocast(run, model, loss_of, make):
    optimizer = make(model.parameters())
    for step in range(run.steps):
        optimizer.zero_grad()
        with torch.autocast(run.device, dtype=BF16, enabled=run.low):
            loss = loss_of(model)
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


def pure(run, model, loss_of, make):
    model.to(run.dtype)
    optimizer = make(model.parameters())
    for step in range(run.steps):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


def masters(run, model, loss_of, make):
    copies = [p.detach().clone() for p in model.parameters()]
    model.to(run.dtype)
    optimizer = make(copies)
    for step in range(run.steps):
        model.zero_grad()
        loss = loss_of(model)
        loss.backward()
        for copy, p in zip(copies, model.parameters()):
            copy.grad = None if p.grad is None else p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for copy, p in zip(copies, model.parameters()):
                p.copy_(copy)
        run.report(step, loss)
    run.finish(model, optimizer)


def scaler(run, model, loss_of, make):
    optimizer = make(model.parameters())
    grad_scaler = torch.amp.GradScaler(run.device, enabled=run.low)
    for step in range(run.steps):
        optimizer.zero_grad()
        with torch.autocast(run.device, dtype=FP16, enabled=run.low):
            loss = loss_of(model)
        grad_scaler.scale(loss).backward()
        scale = grad_scaler.get_scale()
        if step not in run.skipped:
            grad_scaler.step(optimizer)
        grad_scaler.update()
        run.report(step, loss, skipped=grad_scaler.get_scale() < scale)
    run.finish(model, optimizer)


REGIMES = {"bf16-autocast": autocast, "bf16-pure": pure, "bf16-masters": masters, "fp16-scaler": scaler}


def train(run, model, loss_of, make=lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)):
    """`loss_of(model)` draws a batch and returns the loss; `make(parameters)` returns the optimizer."""
    model.train()
    model.to(run.device)
    run.watch(model)
    REGIMES[run.regime](run, model, loss_of, make)
