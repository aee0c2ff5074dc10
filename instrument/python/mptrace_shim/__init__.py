"""mp-trace's part in Python: layer names, parameter names, steps, loss scaling, DataLoader workers.

The adapter in C++ sees every op, but none of these. start() runs in every Python process below `mp-trace --`,
mostly in processes that never import torch, so it imports nothing heavy. The rest starts after torch is imported.
Nothing here raises into the program, draws from a generator or changes a result.
"""
import os
import sys

from . import options as _options
from . import say as _say


class TorchFinder:
    """Lets the other finders find torch, and calls `after(torch)` when its loader is done.

    Only the loader's exec_module is replaced, for one call: the module keeps its own loader and spec.
    """

    def __init__(self, before, after):
        self._before = before
        self._after = after
        self._asking = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self._asking:
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
                _say.guarded("before torch", self._before)
                original(module)  # if it fails, the next import calls this again
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _say.guarded("after torch", self._after, module)

            loader.exec_module = exec_module
        except AttributeError as error:
            _say.once("the loader of torch", error)


def _before_torch(options):
    from . import compiled
    compiled.switch_off_if_asked(options)


def _after_torch(options, torch):
    from . import install
    install.install(torch, options)


def start():
    options = _options.read(os.environ.get("MP_TRACE_OPTIONS", ""))
    if options is None:
        return  # the preload library prints the reason if it matters
    _say.quiet = options.quiet
    import atexit
    from . import finish
    # Registered first, so it runs last: after the program's own handlers.
    atexit.register(finish.at_exit)
    if "torch" in sys.modules:  # imported by a .pth file
        _say.guarded("after torch", _after_torch, options, sys.modules["torch"])
        return
    sys.meta_path.insert(0, TorchFinder(lambda: _before_torch(options), lambda torch: _after_torch(options, torch)))
