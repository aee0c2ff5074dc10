"""Ends the recording of a process: at exit, and where the process leaves by os._exit.

The end of the recording says how the program ended: "" in an orderly way, else the exception or the status that ended
it. At Python's exit the status is not known yet; the adapter hears it from the C library.
"""
import functools
import os
import sys
import threading

from . import say

_ops = None
_armed_in = None  # pid
_finished = None  # the pid that has finished; a forked child finishes separately
before_finish = []  # called while the recording still takes notes
on_finish = []    # called once the recording has ended
silent_children = []  # pids of workers that a pool has ended: their summaries are printed here
_failure = ""     # of a task of this worker


def arm(ops):
    global _ops, _armed_in
    _ops, _armed_in = ops, os.getpid()
    say.guarded("stderr", say.keep_first_stderr)
    say.guarded("multiprocessing", _arm_children)
    say.guarded("os._exit", _arm_exit)
    os.register_at_fork(after_in_child=_in_child)


def _in_child():
    global _armed_in
    _armed_in = os.getpid()
    silent_children.clear()
    say.guarded("fork", _ops.forked)


def at_exit(how=None):
    global _finished
    if _ops is None or _finished == os.getpid():
        return
    _finished = os.getpid()
    say.guarded("stderr", say.use_first_stderr)
    for told in before_finish:
        say.guarded("finish", told)
    say.guarded("finish", _ops.finish, _uncaught() if how is None else how)
    for stop in on_finish:
        say.guarded("finish", stop)
    if silent_children:
        say.guarded("summaries", _ops.summaries, silent_children)


def task_ends(failure):
    """A worker of a pool has done a task. Nothing may follow."""
    global _failure
    _failure = _failure or failure
    if _ops is not None:
        _ops.task_ends(_failure)


def task_begins():
    if _ops is not None:
        _ops.task_begins()


def _uncaught():
    """The name of the exception that ends the program, "exits" without one."""
    if hasattr(sys, "ps1") or "ipykernel" in sys.modules:
        return "exits"  # an interactive session continues after an exception
    error = getattr(sys, "last_value", None)
    return type(error).__name__ if error is not None else "exits"


def _arm_exit():
    original = os._exit

    @functools.wraps(original)
    def leave(*arguments, **named):
        # On another thread it may come from a watchdog while the main thread hangs: then nothing may wait.
        if os.getpid() == _armed_in and threading.current_thread() is threading.main_thread():
            status = next(iter((*arguments, *named.values())), 0)
            at_exit(f"exit status {status}" if status else "")
        original(*arguments, **named)

    os._exit = leave


def _arm_children():
    # torch imports multiprocessing; without it, no such children exist.
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return
    original = process.BaseProcess._bootstrap

    @functools.wraps(original)
    def bootstrap(self, *arguments, **named):
        status = None
        try:
            status = original(self, *arguments, **named)
            return status
        finally:
            at_exit(f"exit status {status}" if status else _failure)

    process.BaseProcess._bootstrap = say.unseen(bootstrap)
    if process.parent_process() is not None and "multiprocessing.util" in sys.modules:
        # Torch was imported after the child started: only its finalizers can still be used.
        sys.modules["multiprocessing.util"].Finalize(None, at_exit, exitpriority=-1000)
