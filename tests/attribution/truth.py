"""Runs a training script and writes down which module each of its ops belongs to, without mp-trace.

`truth.py FOLDER traced|truth SCRIPT [ARGUMENTS]`. "truth" writes FOLDER/truth.RANK, one line an op:
phase, op, layer, "-" where no module is known. "traced" only names the adapter's own list of this rank.

Forward: hooks of our own on every module, the first before and the last after all others. Backward: whatever a
module's outputs are computed from and its inputs are not was made by it, which a walk over the autograd graph at
each hook finds out; pre-hooks on those nodes then say which one runs. No sequence numbers, no stack of mp-trace's.
"""
import os
import runpy
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)


class Truth(TorchDispatchMode):
    def __init__(self, path):
        super().__init__()
        self.out = open(path, "w", encoding="utf-8")
        self.names = {}     # module -> layer
        self.stack = []     # modules under way
        self.labels = {}    # node -> layer of the module that made it
        self.node = None    # the layer whose node runs
        self.phase = "forward"

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        if self.phase == "backward":
            # Hooks on tensors run before those on their node.
            layer = self.node or self.labels.get(torch._C._current_autograd_node())
        else:
            layer = self.stack[-1] if self.stack else None
        self.out.write(f"{self.phase}\t{function._schema.name}\t{layer or '-'}\n")
        return function(*arguments, **(named or {}))

    # ---- modules

    def watch(self):
        torch.nn.modules.module.register_module_forward_pre_hook(self.first_call)
        torch.Tensor.backward = self.in_phase("backward", torch.Tensor.backward, forget=True)
        for cls in (torch.optim.AdamW, torch.optim.SGD):
            cls.step = self.in_phase("optimizer", cls.step)

    def first_call(self, module, inputs):
        """A global hook, the only one that is there before anybody knows the model."""
        if module in self.names:
            return
        for name, part in module.named_modules():
            clean = ".".join(p for p in name.split(".") if p != "_fsdp_wrapped_module")
            # FSDP1 stores the wrapped module as .module; fully_shard() made the class "FSDPGPT".
            self.names[part] = clean or type(getattr(module, "module", module)).__name__.replace("FSDP", "", 1)
            part.register_forward_pre_hook(self.before, prepend=True)
            part.register_forward_hook(self.after, always_call=True)
        self.before(module, inputs)  # its own hooks are being called already

    def before(self, module, inputs):
        # FSDP1's parameters are views that a module further out has made, of one flat one.
        own = [value for held in (module._parameters, vars(module)) for value in held.values()
               if isinstance(value, torch.Tensor)]
        self.label([inputs, own], self.stack[-1] if self.stack else None)
        self.stack.append(self.names[module])

    def after(self, module, inputs, outputs):
        self.label(outputs, self.stack.pop())

    def label(self, values, layer):
        """Assigns the ops that compute `values`, if they have no layer yet, to `layer`."""
        left = [t.grad_fn for t in tensors_in(values) if t.grad_fn is not None]
        while left:
            node = left.pop()
            if node is None or node in self.labels:
                continue
            self.labels[node] = layer
            node.register_prehook(lambda _, layer=layer: setattr(self, "node", layer))
            node.register_hook(lambda *_: setattr(self, "node", None))
            left.extend(node for node, _ in node.next_functions)

    # ---- phases

    def in_phase(self, phase, original, forget=False):
        def call(first, *arguments, **named):
            if forget:
                self.label(first, "(loss)")
            before, self.phase = self.phase, phase
            try:
                return original(first, *arguments, **named)
            finally:
                self.phase, self.node = before, None
                if forget:
                    self.labels.clear()
        return call


def main():
    folder, what, script = sys.argv[1:4]
    rank = os.environ.get("RANK", "0")
    os.environ["MP_TRACE_TEST_OPLOG"] = os.path.join(folder, f"traced.{rank}")
    sys.argv = sys.argv[3:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    if what == "traced":
        runpy.run_path(script, run_name="__main__")
        return
    truth = Truth(os.path.join(folder, f"truth.{rank}"))
    truth.watch()
    with truth:
        runpy.run_path(script, run_name="__main__")
    truth.out.close()


if __name__ == "__main__":
    main()
