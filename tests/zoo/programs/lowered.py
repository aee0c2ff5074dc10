"""The kinds of defects that mutants have: a change of one layer of a model, of which `low` is the precision.

KINDS has for each kind the change, the low precision and the layers that it fits. A change may return a function of an
optimizer, which is called after each of its steps. The lowered op is an ordinary part of the program: another forward,
a hook, a step hook. In fp32 it is the same code.
"""
import torch
from torch import nn

LINEAR = (nn.Linear,)


def trained(model, layer):
    """The layer's own parameters that have gradients; those of a model under LoRA are frozen."""
    return [p for p in model.get_submodule(layer).parameters(recurse=False) if p.requires_grad]


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
    for p in trained(model, layer):
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


def columns(model, layer, low):
    """A product is added up one column at a time in 16 bits."""
    module = model.get_submodule(layer)

    def forward(x):
        with torch.autocast("cpu", enabled=False):
            h, weight = x.to(low), module.weight.to(low)
            total = torch.zeros(*x.shape[:-1], module.out_features, dtype=low)
            for k in range(module.in_features):
                total = total + h[..., k:k + 1] * weight[:, k]
            return (total if module.bias is None else total + module.bias.to(low)).to(x.dtype)

    module.forward = forward


def steps(model, layer, low):
    """The step counter of the layer's parameters is stored in 8 bits after each step, resumed at step 16."""
    narrow = torch.float8_e4m3fn if low is not torch.float32 else low

    def after_step(optimizer, *_):
        for p in model.get_submodule(layer).parameters(recurse=False):
            if p in optimizer.state:
                count = optimizer.state[p]["step"]
                count.copy_(count.clamp_min(16).to(narrow).to(count.dtype))
    return after_step


def table(model, layer, low):
    """The layer's table of constants is stored in 8 bits."""
    constant(model, layer, torch.float8_e4m3fn if low is not torch.float32 else low)


def has_parameters(module):
    return any(p.requires_grad for p in module.parameters(recurse=False))


def weight(model, layer, low):
    """The layer's weights are stored in 16 bits after each step, without fp32 master weights."""
    def after_step(*_):
        for p in model.get_submodule(layer).parameters(recurse=False):
            p.data.copy_(p.data.to(low).to(p.dtype))
    return after_step


def gradient(model, layer, low):
    """The layer's gradients are stored in 8 bits without a scale, as a compressed reduction would."""
    narrow = torch.float8_e5m2 if low is not torch.float32 else low
    for p in trained(model, layer):
        p.register_hook(lambda g: g.to(narrow).to(g.dtype))


def products(module):
    return type(module) in LINEAR or isinstance(module, nn.Conv2d)


KINDS = {"accumulate": (accumulate, torch.bfloat16, lambda m: type(m) in LINEAR),
         "reduce": (reduce, torch.float16, has_parameters),
         "cast": (cast, torch.bfloat16, products),
         "constant": (constant, torch.bfloat16,
                      lambda m: any("inv_freq" in n or "table" in n for n, _ in m.named_buffers(recurse=False))),
         "state": (state, torch.float16, has_parameters),
         "counter": (counter, torch.bfloat16, has_parameters)}
# Stronger forms of accumulate, counter and constant, which rarely reach a floor in five steps.
STRONGER = {"columns": (columns, torch.bfloat16, KINDS["accumulate"][2]),
            "steps": (steps, torch.bfloat16, has_parameters),
            "table": (table, torch.bfloat16, KINDS["constant"][2])}
# For the scripts of others, which have their own optimizers.
MORE = {"weight": (weight, torch.bfloat16, has_parameters),
        "gradient": (gradient, torch.bfloat16, has_parameters)}
