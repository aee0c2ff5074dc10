"""Workers of multiprocessing.Pool, which ends them by SIGTERM while they wait for a task.

A worker's recording therefore has its end before the result of a task is sent, and takes it back when the next task
begins. The process that made the pool prints the summaries that its workers could not.
"""
import functools
import signal
import sys

from . import finish, say


def install(pool):
    """`pool`: the module multiprocessing.pool."""
    _wrap_worker(pool)
    _wrap_end(pool.Pool)


def _wrap_worker(pool):
    original = pool.worker

    # functools.wraps keeps the name under which spawn and forkserver pickle it: the child finds its own
    # wrapper.
    @functools.wraps(original)
    def worker(inqueue, outqueue, *arguments, **named):
        say.guarded("pools", _wrap_queues, inqueue, outqueue)
        return original(inqueue, outqueue, *arguments, **named)

    pool.worker = say.unseen(worker)


def _wrap_queues(inqueue, outqueue):
    process = sys.modules["multiprocessing.process"]
    # A ThreadPool has the same function, on threads of the program.
    if process.parent_process() is None or not hasattr(inqueue, "_writer"):
        return
    get, put = inqueue.get, outqueue.put

    def next_task():
        task = get()
        if task is not None:
            say.guarded("pools", finish.task_begins)
        return task

    def send(result):
        say.guarded("pools", finish.task_ends, _failure_of(result))
        put(result)

    inqueue.get, outqueue.put = next_task, send


def _failure_of(result):
    """The name of the exception that ended a task, "" without one."""
    succeeded, value = result[2]
    if succeeded:
        return ""
    return type(getattr(value, "exc", value)).__name__  # pool.ExceptionWithTraceback


def _wrap_end(cls):
    original = cls.__dict__["_terminate_pool"].__func__

    @functools.wraps(original)
    def terminate_pool(cls, *arguments, **named):
        result = original(cls, *arguments, **named)
        say.guarded("pools", _note_ended, arguments[3])
        return result

    cls._terminate_pool = classmethod(say.unseen(terminate_pool))


def _note_ended(workers):
    finish.silent_children.extend(w.pid for w in workers if getattr(w, "exitcode", None) == -signal.SIGTERM)
