"""torch.compile: never switched off silently. Compiled regions run past the dispatcher and are noted."""
import functools
import os

from . import say

_SWITCH = "TORCHDYNAMO_DISABLE"


def switch_off_if_asked(options):
    """--eager. Before torch is imported, and for the children too; only the first process says it."""
    if options.eager and os.environ.get(_SWITCH) != "1":
        os.environ[_SWITCH] = "1"
        say.line("torch.compile is switched off (--eager): compiled regions run eagerly")


def install(torch, ops):
    original = getattr(torch, "compile", None)
    if original is None or os.environ.get(_SWITCH) == "1":
        return
    noted = set()

    def note(model):
        if getattr(model, "__name__", "") == "_call_impl":  # module.compile()
            model = getattr(model, "__self__", model)
        name = getattr(model, "__qualname__", None) or type(model).__name__
        if name not in noted:
            noted.add(name)
            ops.note("not_observed", f"torch.compile({name}): compiled regions are not observed")

    @functools.wraps(original)
    def compile(model=None, *arguments, **named):
        if model is not None:  # None: a decorator's arguments; it comes back with the model
            say.guarded("torch.compile", note, model)
        return original(model, *arguments, **named)

    torch.compile = say.unseen(compile)
