"""Tracks the running layer, by a wrapper of torch.nn.Module.__call__. Other methods count as part of their caller.

The global forward hooks are the official way, but they have three problems. torch.compile prints a warning to the
program's stderr when there are any. They are skipped on BaseException (and on every exception before 2.1). They make
each call slower. torch._dynamo, if imported later, takes this wrapper for the original.
"""
import functools
import threading

from . import say


class _Stack(threading.local):
    def __init__(self):
        self.modules = []


class Calls:
    """The installed wrapper, with a method to remove it."""

    def __init__(self, module_class, wrapper, original, wants_layers):
        self._class = module_class
        self._wants_layers = wants_layers
        self._wrapper = wrapper
        self._original = original
        self.off = False

    def fault(self, error):
        say.once("modules", error)
        self.remove()

    def first_step_is_over(self):
        if not self._wants_layers:
            self.remove()

    def remove(self):
        self.off = True
        if self._class.__dict__.get("__call__") is self._wrapper:
            self._class.__call__ = self._original


def install(torch, ops, known, layer_functions, wants_layers):
    """Wraps Module.__call__. Without layers (watch mode) only until the first step, to find the roots."""
    module_class = torch.nn.Module
    original = module_class.__call__
    is_compiling = ops.is_compiling
    push, pop, known.spell = layer_functions
    names, at_call, running = known.names, known.at_call, _Stack()

    @functools.wraps(original)
    def call_in_layer(self, *arguments, **named):
        if is_compiling() or calls.off:
            return original(self, *arguments, **named)
        modules = running.modules
        try:
            push(names.get(id(self)) or known.learn(self, modules[-1] if modules else None))
            if at_call and id(self) in at_call:
                at_call.pop(id(self))(arguments)
        except Exception as error:
            calls.fault(error)
            return original(self, *arguments, **named)
        modules.append(self)
        try:
            return original(self, *arguments, **named)
        except BaseException as error:
            say.hide_frame(error)
            raise
        finally:
            modules.pop()
            try:
                pop()
            except Exception as error:
                calls.fault(error)

    @functools.wraps(original)
    def call_of_root(self, *arguments, **named):
        # Parents are called before their children, so an unknown module is a root.
        if not is_compiling() and not calls.off and id(self) not in names:
            try:
                known.learn(self, None)
            except Exception as error:
                calls.fault(error)
        try:
            return original(self, *arguments, **named)
        except BaseException as error:
            say.hide_frame(error)
            raise

    wrapper = say.unseen(call_in_layer if wants_layers else call_of_root)
    calls = Calls(module_class, wrapper, original, wants_layers)
    _hide_from_dynamo(torch, wrapper)
    module_class.__call__ = wrapper
    return calls


def _hide_from_dynamo(torch, function):
    # Like torch's own Module.__call__: dynamo skips this frame and compiles the forward() below it.
    skip = getattr(getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None), "skip_code", None)
    if skip is not None:
        skip(function.__code__)
