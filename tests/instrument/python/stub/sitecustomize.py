"""The user's own sitecustomize of the tests. It also replaces the adapter: once torch is imported, and before
mp-trace's part looks for them, it defines the ops torch.ops.mptrace.* in Python. Each call becomes a
line of JSON in $STUB_CALLS, which processes share.
"""
import json
import os
import sys

SCHEMAS = ("loss(Tensor root, Tensor loss) -> ()", "parameter(str name, Tensor p) -> ()",
           "buffer(str name, Tensor b) -> ()", "state(str name, Tensor t) -> ()", "before_step(int optimizer) -> ()",
           "after_step(int optimizer, bool skipped, float scale) -> ()", "layer_push(str name) -> ()",
           "layer_pop() -> ()", "disarm(str reason) -> ()", "finish(str how) -> ()", "note(str kind, str text) -> ()",
           "gradient(str name, Tensor g) -> ()", "source(str layer, str where) -> ()", "policy(str text) -> ()",
           "place(str role, str layer, str dtype, int tensors, int elements) -> ()",
           "internal_begin() -> ()", "internal_end() -> ()", "outside(Tensor[] values, str where) -> ()",
           "world(int rank, int local_rank, int size) -> ()")

print("the user's sitecustomize", flush=True) if os.environ.get("STUB_SAYS") else None


def recorder(name):
    def record(*arguments):
        if name == os.environ.get("STUB_FAILS"):
            raise RuntimeError("the stub fails")
        plain = []
        for value in arguments:
            if hasattr(value, "detach"):
                value = value.detach()
                value = [list(value.shape), str(value.dtype), float(value.float().sum()) if value.numel() else 0.0]
            plain.append(value)
        line = json.dumps([os.getpid(), name, *plain]) + "\n"
        file = os.open(os.environ["STUB_CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line.encode())
        os.close(file)
    return record


def define(torch):
    library = torch.library.Library("mptrace", "DEF")
    for schema in SCHEMAS:
        name = schema.split("(")[0]
        library.define(schema)
        library.impl(name, recorder(name), "CompositeImplicitAutograd")
    import weakref
    for finalizer in list(weakref.finalize._registry):
        peeked = finalizer.peek()
        if peeked and peeked[0] is library:
            finalizer.atexit = False  # torch takes Python's ops away at exit; the adapter's stay
    return library


if os.environ.get("STUB_CALLS") and "mptrace_shim" in sys.modules:
    import mptrace_shim
    after_torch = mptrace_shim._after_torch

    def after_stub(options, torch):
        mptrace_shim._stub = define(torch)
        after_torch(options, torch)

    mptrace_shim._after_torch = after_stub
