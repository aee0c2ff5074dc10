"""A program of the zoo in which one op's precision is lowered: mutant.py KIND LAYER good|bad PROGRAM NAME ...

KIND says what is lowered in LAYER; `good` runs the same code in fp32. `mutant.py '' '' list PROGRAM NAME` prints each
kind with the layers that it fits. The lowered op is an ordinary part of the program: another forward, a hook, a step
hook.
"""
import os
import runpy
import sys

import torch
from torch import nn

import recipe

LINEAR = (nn.Linear,)


def accumulate(model, layer, low):
    """A product is added up column by column in 16 bits."""
    module = model.get_submodule(layer)

    def forward(x):
        with torch.autocast("cpu", enabled=False):
            h, weight = x.to(low), module.weight.to(low)
            total = torch.zeros(*x.shape[:-1], module.out_features, dtype=low)
            size = max(1, module.in_features // 64)
            for a, b in zip(h.split(size, -1), weight.split(size, -1)):
                total = total + a @ b.t()
            return (total if module.bias is None else total + module.bias.to(low)).to(x.dtype)

    module.forward = forward


def reduce(model, layer, low):
    """The layer's gradients are reduced in 16 bits without a loss scale."""
    for p in model.get_submodule(layer).parameters(recurse=False):
        p.register_hook(lambda g: (g * 1e-4).to(low).to(g.dtype) * 1e4)


def cast(model, layer, low):
    """The layer's input is stored in 8 bits without a scale."""
    narrow = torch.float8_e4m3fn if low is not torch.float32 else low
    model.get_submodule(layer).register_forward_pre_hook(lambda _, args: (args[0].to(narrow).to(args[0].dtype),
        *args[1:]))


def constant(model, layer, low):
    """The layer's table of constants is stored in 16 bits."""
    for name, buffer in model.get_submodule(layer).named_buffers(recurse=False):
        if buffer.is_floating_point():
            buffer.copy_(buffer.to(low).to(buffer.dtype))


def state(model, layer, low):
    """The optimizer's second moment of the layer is stored in fp16, where small squares are zero."""
    def after_step(optimizer, *_):
        for p in model.get_submodule(layer).parameters(recurse=False):
            if p in optimizer.state:
                moment = optimizer.state[p]["exp_avg_sq"]
                moment.copy_(moment.to(low).to(moment.dtype))
    return after_step


def counter(model, layer, low):
    """The step counter of the layer's parameters is a 16-bit number, resumed at step 256."""
    def after_step(optimizer, *_):
        for p in model.get_submodule(layer).parameters(recurse=False):
            if p in optimizer.state and optimizer.state[p]["step"] < 256:
                optimizer.state[p]["step"] = torch.tensor(256.0, dtype=low)
    return after_step


def has_parameters(module):
    return any(p.requires_grad for p in module.parameters(recurse=False))


KINDS = {"accumulate": (accumulate, torch.bfloat16, lambda m: type(m) in LINEAR),
         "reduce": (reduce, torch.float16, has_parameters),
         "cast": (cast, torch.bfloat16, lambda m: type(m) in LINEAR or isinstance(m, nn.Conv2d)),
         "constant": (constant, torch.bfloat16,
                      lambda m: any("inv_freq" in n or "table" in n for n, _ in m.named_buffers(recurse=False))),
         "state": (state, torch.float16, has_parameters),
         "counter": (counter, torch.bfloat16, has_parameters)}


def main():
    kind, layer, form = sys.argv[1:4]
    del sys.argv[1:4]
    train = recipe.train

    def mutated(run, model, loss_of, make=lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)):
        if form == "list":
            for each, (_, _, fits) in KINDS.items():
                print(each, *(name for name, m in model.named_modules() if name and fits(m)))
            return
        change, low, _ = KINDS[kind]
        after_step = change(model, layer, low if form == "bad" and run.low else torch.float32)

        def with_hook(parameters):
            optimizer = make(parameters)
            if after_step:
                optimizer.register_step_post_hook(after_step)
            return optimizer

        train(run, model, loss_of, with_hook)

    recipe.train = mutated
    program = sys.argv[1]
    del sys.argv[0]
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), program), run_name="__main__")


main()
