"""Layer scopes that are not modules: "(clipping)", "(optimizer)", "(scaler)", "(data)", "(bucket)"."""
import functools

from . import say


class Scopes:
    """Opens and closes scopes; when one of our ops fails, `calls` (modules.Calls) is switched off with them."""

    def __init__(self, ops, layer_functions, calls):
        self._push, self._pop, self._spell = layer_functions
        self._calls = calls
        self._is_compiling = ops.is_compiling

    def enter(self, name):
        """Returns whether the scope was opened, so that leave() must be called."""
        if self._calls.off or self._is_compiling():
            return False
        try:
            self._push(self._spell(name))
            return True
        except Exception as error:
            self._calls.fault(error)
            return False

    def leave(self):
        try:
            self._pop()
        except Exception as error:
            self._calls.fault(error)

    def suspend(self, name):
        """Closes the innermost scope, which must be `name`; returns what opens it again."""
        if self._calls.off or self._is_compiling():
            return _nothing
        self.leave()
        return lambda: self.enter(name)

    def around(self, original, name):
        @functools.wraps(original)
        def call(*arguments, **named):
            if not self.enter(name):
                return original(*arguments, **named)
            try:
                return original(*arguments, **named)
            except BaseException as error:
                say.hide_frame(error)
                raise
            finally:
                self.leave()

        return say.unseen(call)

    def wrap(self, owner, name, label):
        """Wraps a function of a module or class in place, once."""
        original = vars(owner).get(name)
        if callable(original) and not hasattr(original, "_mptrace_scope"):
            wrapper = self.around(original, label)
            wrapper._mptrace_scope = label
            setattr(owner, name, wrapper)


class NoScopes:
    """Used when layers are not recorded."""

    def enter(self, _):
        return False

    def leave(self):
        pass

    def suspend(self, _):
        return _nothing

    def around(self, original, _):
        return original

    def wrap(self, *_):
        pass


def _nothing():
    pass


def install(torch, ops, layer_functions, calls):
    scopes = Scopes(ops, layer_functions, calls)
    clipping = torch.nn.utils.clip_grad
    for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"):
        original = getattr(clipping, name, None)
        if original is None:
            continue
        scopes.wrap(clipping, name, "(clipping)")
        if getattr(torch.nn.utils, name, None) is original:
            setattr(torch.nn.utils, name, getattr(clipping, name))
    # Not __next__ itself: it issues warnings, and a wrapper would change the line that they name.
    for cls in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
        scopes.wrap(getattr(torch.utils.data.dataloader, cls), "_next_data", "(data)")
    return scopes
