"""Ends the recording of a process: at exit, and where multiprocessing leaves by os._exit."""
import functools
import os
import sys

from . import say

_ops = None
_finished = None  # the pid that has finished; a forked child finishes separately


def arm(ops):
    global _ops
    _ops = ops
    say.guarded("multiprocessing", _arm_children)


def at_exit():
    global _finished
    if _ops is None or _finished == os.getpid():
        return
    _finished = os.getpid()
    say.guarded("finish", _ops.finish)


def _arm_children():
    # torch imports multiprocessing; without it, no such children exist.
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return
    original = process.BaseProcess._bootstrap

    @functools.wraps(original)
    def bootstrap(self, *arguments, **named):
        try:
            return original(self, *arguments, **named)
        finally:
            at_exit()

    process.BaseProcess._bootstrap = say.unseen(bootstrap)
    if process.parent_process() is not None and "multiprocessing.util" in sys.modules:
        # Torch was imported after the child started: only its finalizers can still be used.
        sys.modules["multiprocessing.util"].Finalize(None, at_exit, exitpriority=-1000)
