"""torch.compile: never switched off silently. What inductor compiles bypasses the dispatcher: its results are reported
as computed outside, when they are computed. A function that is compiled and never runs is not reported, and neither
are backends that run PyTorch's ops ("eager", "aot_eager"): the adapter sees them.
"""
import functools
import os
import sys

from . import imports, say
from .ops import local_tensor

_SWITCH = "TORCHDYNAMO_DISABLE"
_CLASS = "CompiledFxGraph"  # one compiled forward or backward
_MODULES = ("torch._inductor.output_code", "torch._inductor.codecache")  # of the class, from 2.6 on and before


def switch_off_if_asked(options):
    """--eager. Runs before torch is imported; child processes inherit it. Only the first process prints the line."""
    if options.eager and os.environ.get(_SWITCH) != "1":
        os.environ[_SWITCH] = "1"
        say.line("torch.compile is switched off (--eager): compiled regions run eagerly")


class Regions:
    """Reports what compiled code returns and what it writes in place."""

    def __init__(self, torch, ops):
        self._torch = torch
        self._ops = ops
        self._names = {}  # id(compiled graph) -> name

    def wrap(self, module):
        cls = getattr(module, _CLASS, None)
        original = cls.__dict__.get("__call__") if cls is not None else None
        if original is None or hasattr(original, "_mptrace_region"):
            return
        regions = self

        @functools.wraps(original)
        def run(self, inputs, *arguments, **named):
            # The call empties the list of inputs.
            written = say.guarded("torch.compile", regions.written, self, inputs)
            try:
                result = original(self, inputs, *arguments, **named)
            except BaseException as error:
                say.hide_frame(error)
                raise
            say.guarded("torch.compile", regions.tell, self, written, result)
            return result

        run._mptrace_region = True
        cls.__call__ = say.unseen(run)

    @staticmethod
    def written(graph, inputs):
        return [inputs[i] for i in getattr(graph, "mutated_input_idxs", ()) or () if i < len(inputs)]

    def tell(self, graph, written, result):
        results = result if isinstance(result, (list, tuple)) else [result]
        values = [local_tensor(self._torch, t) for t in [*results, *(written or ())]
                  if isinstance(t, self._torch.Tensor)]
        values = [t for t in values if t is not None and (t.is_floating_point() or t.is_complex())]
        if values:
            self._ops.outside(values, self._name(graph))

    def _name(self, graph):
        if id(graph) not in self._names:
            if not self._names and os.environ.get(_SWITCH) != "1":
                say.line("torch.compile: what compiled code computes is not observed; --eager runs it eagerly")
            backward = getattr(self._torch._C, "_current_graph_task_id", lambda: -1)() != -1
            where = f"the backward of {_caller()}" if backward else _caller()
            self._names[id(graph)] = f"torch.compile: {where} ran compiled code, which is not observed"
        return self._names[id(graph)]


def _caller():
    """The line of the program that runs the compiled code."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if "/torch/" not in path and "mptrace_shim" not in path and not path.startswith("<"):
            return f"{os.path.basename(path)}:{frame.f_lineno}"
        frame = frame.f_back
    return "a region"


def install(torch, ops):
    if getattr(torch, "compile", None) is None or os.environ.get(_SWITCH) == "1":
        return
    regions = Regions(torch, ops)
    for name in _MODULES:
        imports.after(name, lambda module: say.guarded("torch.compile", regions.wrap, module))
