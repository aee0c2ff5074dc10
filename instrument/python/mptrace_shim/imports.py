"""Calls after the import of a module that the program may import later."""
import sys

from . import say


class Finder:
    """Lets the other finders find a module, and calls `before()` and `after(module)` around its loader.

    Only the loader's exec_module is replaced, for one call: the module keeps its own loader and spec.
    """

    def __init__(self, name, before, after):
        self._name = name
        self._before = before
        self._after = after
        self._asking = False

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self._asking:
            return None
        self._asking = True
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find and finder is not self else None
                if spec is not None:
                    self._wrap(spec.loader)
                    return spec
        finally:
            self._asking = False
        return None

    def _wrap(self, loader):
        try:
            original = loader.exec_module

            def exec_module(module):
                del loader.exec_module
                say.guarded(f"before {self._name}", self._before)
                original(module)  # if it fails, the next import calls this again
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                say.guarded(f"after {self._name}", self._after, module)

            loader.exec_module = exec_module
        except AttributeError as error:
            say.once(f"the loader of {self._name}", error)


def after(name, call):
    """Calls `call(module)` once the module is imported: now or later."""
    if name in sys.modules:
        call(sys.modules[name])
    else:
        sys.meta_path.insert(0, Finder(name, lambda: None, call))
