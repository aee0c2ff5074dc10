"""torch.compile: never switched off silently. Compiled regions bypass the dispatcher; a note is recorded for them."""
import functools
import os

from . import say

_SWITCH = "TORCHDYNAMO_DISABLE"


def switch_off_if_asked(options):
    """--eager. Runs before torch is imported; child processes inherit it. Only the first process prints the line."""
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
        if model is not None:  # None: called with a decorator's arguments; the next call has the model
            say.guarded("torch.compile", note, model)
        return original(model, *arguments, **named)

    torch.compile = say.unseen(compile)
