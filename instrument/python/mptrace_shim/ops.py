"""The adapter's ops (torch.ops.mptrace.*), called so that no mode, subclass or tracer of the program sees them."""
import ctypes
import os

_TENSOR_OPS = ("loss", "parameter", "buffer", "state")
_PLAIN_OPS = ("before_step", "after_step", "layer_push", "layer_pop", "disarm", "finish")
# An adapter may lack these.
_OPTIONAL_TENSOR_OPS = ("gradient", "outside")
_OPTIONAL_OPS = ("note", "internal_begin", "internal_end", "save", "source", "policy", "place", "world",
                 "optimizer_made", "task_begins", "task_ends", "summaries", "forked")


class _Hidden:
    """While entered, no TorchFunctionMode, TorchDispatchMode or tensor subclass sees a call."""

    def __init__(self, c):
        self._c = c
        self._function = self._dispatch = None

    def __enter__(self):
        self._function = self._c.DisableTorchFunction()
        self._function.__enter__()
        self._dispatch = self._c._DisableTorchDispatch()  # before 2.0 active from here until it is freed
        if hasattr(self._dispatch, "__enter__"):
            self._dispatch.__enter__()

    def __exit__(self, *_):
        if hasattr(self._dispatch, "__exit__"):
            self._dispatch.__exit__(None, None, None)
        self._dispatch = None
        self._function.__exit__(None, None, None)


class _Internal(_Hidden):
    """Also hidden from the adapter."""

    def __init__(self, ops, c):
        super().__init__(c)
        self._ops = ops

    def __enter__(self):
        super().__enter__()
        self._ops.internal_begin()

    def __exit__(self, *_):
        self._ops.internal_end()
        super().__exit__()


class Ops:
    """Each op is a method of the same name; a missing optional op does nothing."""

    def __init__(self, torch):
        self._c = torch._C
        self._function_modes = getattr(torch._C, "_len_torch_function_stack", lambda: 0)
        self._dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
        # torch._dynamo treats its result as True while it traces, and so leaves our code out.
        compiler = getattr(torch, "compiler", None)
        self.is_compiling = (getattr(compiler, "is_dynamo_compiling", None) or
                             getattr(compiler, "is_compiling", None) or (lambda: False))
        for name in _PLAIN_OPS:
            setattr(self, name, self._unseen(getattr(torch.ops.mptrace, name)._op))
        for name in _TENSOR_OPS:
            setattr(self, name, self._with_tensors(getattr(torch.ops.mptrace, name)._op))
        for names, wrap in ((_OPTIONAL_OPS, self._unseen), (_OPTIONAL_TENSOR_OPS, self._with_tensors)):
            for name in names:
                packet = getattr(torch.ops.mptrace, name, None)
                setattr(self, name, wrap(packet._op) if packet is not None else _nothing)

    def internal(self):
        """`with ops.internal():` around our own reads: neither the program's modes nor the adapter see them."""
        return _Internal(self, self._c)

    def hidden(self):
        """`with ops.hidden():` around reads of tensors that the program's modes and subclasses must not see."""
        return _Hidden(self._c)

    def layer_functions(self):
        """(push, pop, conversion of a name): the adapter's C functions for these ops, if it has them.

        Cost of a call: 0.14 us through ctypes, 0.25 to 0.5 us through the dispatcher.
        """
        try:
            adapter = ctypes.PyDLL(_mapped_adapter(), mode=os.RTLD_NOLOAD | os.RTLD_LOCAL | os.RTLD_NOW)
            push, pop = adapter.mptrace_layer_push, adapter.mptrace_layer_pop
        except (OSError, AttributeError):
            # torch.jit.trace would record the op in its graph.
            return self._unless_tracing(self.layer_push), self._unless_tracing(self.layer_pop), str
        push.argtypes, push.restype, pop.argtypes, pop.restype = [ctypes.c_char_p], None, [], None
        return push, pop, lambda name: name.encode("utf-8", "replace")

    def _unless_tracing(self, call):
        is_tracing = self._c._is_tracing
        return lambda *arguments: None if is_tracing() else call(*arguments)

    def _modes_active(self):
        return self._function_modes() or self._dispatch_modes()

    def _unseen(self, op):
        def call(*arguments):
            if self._modes_active():
                with _Hidden(self._c):
                    return op(*arguments)
            return op(*arguments)
        return call

    def _with_tensors(self, op):
        # A tensor of a subclass has its own __torch_function__, independent of the modes.
        def call(*arguments):
            with _Hidden(self._c):
                return op(*arguments)
        return call


def _mapped_adapter():
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.split(None, 5)[-1].rstrip("\n") for line in maps if "/libmptrace_torch_" in line}
    if len(paths) != 1:
        raise OSError(f"{len(paths)} adapters are mapped")
    return paths.pop()


def _nothing(*_):
    return None


def available(torch):
    """Whether an adapter is attached to this process."""
    return hasattr(getattr(getattr(torch, "ops", None), "mptrace", None), "before_step")


def local_tensor(torch, tensor):
    """The tensor on this rank: the local tensor of a DTensor. None when it is not a plain tensor."""
    if type(tensor).__name__ == "DTensor":
        tensor = tensor._local_tensor
    if not isinstance(tensor, torch.Tensor):
        return None
    # Other subclasses (quantised, nested ...) have no storage with their values.
    return tensor if type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__ else None
