"""mp-trace's part in Python: layer names, parameter names, steps, loss scaling, DataLoader workers.

The adapter in C++ sees every op, but none of these. start() runs in every Python process below `mp-trace --`,
mostly in processes that never import torch, so it imports nothing heavy. The rest starts after torch is imported.
Nothing here raises into the program, draws from a generator or changes a result.
"""
import os
import sys

from . import imports as _imports
from . import options as _options
from . import say as _say


def _before_torch(options):
    from . import compiled
    compiled.switch_off_if_asked(options)


def _after_torch(options, torch):
    from . import install
    install.install(torch, options)


def _after_pool(pool):
    from . import pools
    _say.guarded("pools", pools.install, pool)


def start():
    options = _options.read(os.environ.get("MP_TRACE_OPTIONS", ""))
    if options is None:
        return  # the preload library prints the reason if it matters
    _say.quiet = options.quiet
    import atexit
    from . import finish
    # Registered first, so it runs last: after the program's own handlers.
    atexit.register(finish.at_exit)
    # Not after torch: a task may be the first to import it.
    _imports.after("multiprocessing.pool", _after_pool)
    if "torch" in sys.modules:  # imported by a .pth file
        _say.guarded("after torch", _after_torch, options, sys.modules["torch"])
        return
    sys.meta_path.insert(0, _imports.Finder("torch", lambda: _before_torch(options),
                                           lambda torch: _after_torch(options, torch)))
