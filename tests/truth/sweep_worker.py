"""One run of sweep.py: every sample of torch's own tests of ops and modules, forward, backward and an optimizer step.

    sweep_worker.py ops|modules bf16|fp16|fp32-of-bf16|fp32-of-fp16 FILE [--op PATTERN] [--most N] [--twin]

Appends JSON lines to FILE: {"begin": key} and {"key": key, "out": digest, "grad": digest, ...}. Samples that FILE has
already begun are skipped, so a run that crashed goes on behind its crash. `fp32-of-`: the same inputs, widened.
"""
import argparse
import contextlib
import ctypes
import fnmatch
import hashlib
import itertools
import json
import os
import sys
import warnings
import zlib

warnings.simplefilter("ignore")
import torch  # noqa: E402
from torch.utils._pytree import tree_flatten, tree_map  # noqa: E402

LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}
NO_VALUES = ("empty", "new_empty", "resize_", "resize_as_", "empty_permuted", "empty_strided", "new_empty_strided",
             "empty_like")  # memory without content


def bytes_of(t):
    """The values of a tensor. Read without torch, so that the twin is not asked for what only this script does."""
    if t.layout != torch.strided:  # detached, because a text names the op that the gradient goes through
        t = t.detach()
        return str(t.coalesce() if t.layout == torch.sparse_coo else t).encode()
    if t._is_zerotensor():  # torch's zeros without memory
        return f"{t.dtype}{tuple(t.shape)}".encode() + bytes(t.numel() * t.element_size())
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    return f"{t.dtype}{tuple(t.shape)}".encode() + ctypes.string_at(t.data_ptr(), t.numel() * t.element_size())


def digest(values, twin=False):
    """The hash of all tensors of a structure; `twin`: of their fp32 twins."""
    hashed = hashlib.sha1()
    for value in tree_flatten(values)[0]:
        if isinstance(value, torch.Tensor):
            hashed.update(bytes_of(twin_of(value) if twin and floats(value) else value))
        else:
            hashed.update(repr(value).encode())
    return hashed.hexdigest()


def twin_of(value):
    """What has no memory that a twin could follow (zeros without memory, sparse tensors) is the value itself."""
    shadow = torch.ops.mptrace.shadow(value)
    return shadow.float() if shadow.dtype in LOW.values() else shadow


def floats(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def widened(value):
    if isinstance(value, torch.dtype):
        return torch.float32 if value in LOW.values() else value
    low = isinstance(value, torch.Tensor) and value.dtype in LOW.values()
    return fresh(value, torch.float32 if low else None)


def fresh(value, dtype=None):
    """A tensor of this sample alone, with the same layout: backward and a step change a leaf, a norm its running
    statistics, and samples share them. In another layout an op may give a copy instead of a view."""
    if not isinstance(value, torch.Tensor) or not (value.is_leaf or dtype):
        return value
    dtype, trained = dtype or value.dtype, value.requires_grad and value.is_leaf
    if value.layout != torch.strided or torch._debug_has_internal_overlap(value) == 1:
        return value.detach().to(dtype, copy=True).requires_grad_(trained)
    copy = torch.empty_strided(value.size(), value.stride(), dtype=dtype, device=value.device)
    return copy.copy_(value.detach()).requires_grad_(trained)


def once_each(change):
    """`change`, which gives the same result for a tensor that a sample has twice."""
    known = {}
    return lambda value: known.setdefault(id(value), (value, change(value)))[1] \
        if isinstance(value, torch.Tensor) else change(value)


def backward(outputs):
    """Gradients that are no constant and exact in every dtype."""
    roots = [o for o in tree_flatten(outputs)[0] if floats(o) and o.requires_grad]
    if not roots:
        return
    generator = torch.Generator().manual_seed(7)
    like = [torch.view_as_real(r) if r.is_complex() else r for r in roots]
    torch.autograd.backward(like, [torch.randint(-8, 9, r.shape, generator=generator).to(r.dtype) for r in like])


def leaves(values):
    return [v for v in tree_flatten(values)[0] if isinstance(v, torch.Tensor) and v.requires_grad and v.is_leaf]


@contextlib.contextmanager
def not_followed(twin):
    """Inputs that are made here are data: the twin starts from their values."""
    if twin:
        torch.ops.mptrace.internal_begin()
    try:
        yield
    finally:
        if twin:
            torch.ops.mptrace.internal_end()


def told(error):
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]


class Record:
    def __init__(self, path, twin):
        self.twin = twin
        self.begun = set()
        if os.path.exists(path):
            with open(path) as f:
                self.begun = {json.loads(line).get("begin") for line in f}
        self.file = open(path, "a")

    def write(self, **line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def sample(self, key, run):
        """`run` returns the outputs and what to differentiate; an error is a result like any other."""
        if key in self.begun:
            return
        self.write(begin=key)
        line = {"key": key}
        torch.manual_seed(zlib.crc32(key.split(":")[-1].encode()))
        try:
            outputs, gradients = run()
            line["out"], line["grad"] = digest(outputs), digest(gradients)
            if self.twin:
                line["twin_out"], line["twin_grad"] = digest(outputs, True), digest(gradients, True)
        except Exception as error:  # noqa: BLE001
            line["error"] = told(error)
        self.write(**line)


def forms(op):
    """The op itself, in place, and into given memory."""
    yield "", plainly(op)
    in_place = op.get_inplace()
    if in_place:
        def write(sample):
            if sample.broadcasts_input:
                raise RuntimeError("the input is broadcast")
            return in_place(sample.input.clone(), *sample.args, **sample.kwargs)
        yield "in place", write
    if op.supports_out:
        def into(sample):
            with torch.no_grad():
                expected = op(sample.input, *sample.args, **sample.kwargs)
                if isinstance(expected, torch.Tensor):
                    out = torch.zeros_like(expected)
                else:
                    out = tuple(torch.zeros_like(e) for e in expected)
                return op(sample.input, *sample.args, **sample.kwargs, out=out)
        yield "out", into


def plainly(op):
    return lambda sample: op(sample.input, *sample.args, **sample.kwargs)


def update(given):
    """One step of SGD on the leaves that got a gradient; what it raises is a result like any other."""
    trained = [t for t in given if t.grad is not None]
    try:
        if trained:
            torch.optim.SGD(trained, lr=0.25).step()
    except Exception as error:  # noqa: BLE001
        return told(error)
    return f"{len(trained)} updated"


def sweep_ops(options, record, dtype, wide):
    from torch.testing._internal.common_methods_invocations import op_db
    # Steps are in a pass of their own: behind the first of them little is measured.
    for steps, op in itertools.product((False, True), op_db):
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if not fnmatch.fnmatch(name, options.op) or op.name in NO_VALUES or dtype not in op.supported_dtypes("cpu"):
            continue
        for form, call in [("step", plainly(op))] * op.supports_autograd if steps else forms(op):
            sweep_samples(options, record, dtype, wide, op, name, form, call)


def sweep_samples(options, record, dtype, wide, op, name, form, call):
    torch.manual_seed(zlib.crc32(name.encode()))
    gradients = op.supports_autograd and form != "out"
    try:
        with not_followed(options.twin):
            samples = list(op.sample_inputs("cpu", dtype, requires_grad=gradients))
    except Exception as error:  # noqa: BLE001
        record.write(key=f"{name} {form}", error=told(error))
        return
    for i, sample in enumerate(samples[:options.most or None]):
        def run(sample=sample):
            with not_followed(options.twin):
                sample = sample.transform(once_each(widened if wide else fresh))
            outputs = call(sample)
            given = leaves([sample.input, sample.args, sample.kwargs])
            backward(outputs)
            gradients = [g.grad for g in given]
            return [outputs, *([update(given), given] if form == "step" else ())], gradients
        record.sample(f"{name} {form}:{i}", run)


def sweep_modules(options, record, dtype, wide):
    from torch.testing._internal.common_modules import module_db
    clock = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])  # the first optimizer gives the steps their numbers
    for stage, steps in (("", 1), ("later", 2)):  # then a step in which little is measured
        for _ in range(steps):
            clock.param_groups[0]["params"][0].grad = torch.zeros(1)
            clock.step()
        for info in module_db:
            if not fnmatch.fnmatch(info.name, options.op):
                continue
            torch.manual_seed(zlib.crc32(info.name.encode()))
            try:
                with not_followed(options.twin):
                    inputs = list(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True,
                                                          training=True))
            except Exception as error:  # noqa: BLE001
                record.write(key=f"{info.name} {stage}", error=told(error))
                continue
            for i, one in enumerate(inputs[:options.most or None]):
                record.sample(f"{info.name} {stage}:{i}", lambda one=one: train(options, info, one, dtype, wide))


def train(options, info, one, dtype, wide):
    """One step: forward, backward, AdamW."""
    with not_followed(options.twin):
        module = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs).to(dtype).train()
    given = (one.forward_input.args, one.forward_input.kwargs)
    if wide:
        module, given = module.float(), tree_map(widened, given)
    parameters = list(module.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=0.01) if parameters else None
    outputs = module(*given[0], **given[1])
    backward(outputs)
    gradients = [x.grad for x in [*leaves(list(given)), *parameters]]
    if optimizer:
        optimizer.step()
    return [outputs, parameters], gradients


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("ops", "modules"))
    parser.add_argument("dtype")
    parser.add_argument("file")
    parser.add_argument("--op", default="*")
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--twin", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dtype = LOW[options.dtype.split("-")[-1]]
    record = Record(options.file, options.twin)
    sweep = sweep_ops if options.kind == "ops" else sweep_modules
    sweep(options, record, dtype, options.dtype.startswith("fp32-of-"))
    record.write(end=True)


if __name__ == "__main__":
    sys.exit(main())
