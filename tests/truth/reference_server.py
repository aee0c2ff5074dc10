"""Runs scripts in forks of one Python that has imported torch, because that import dominates a short run.

Started by runs.py for untraced runs; its arguments are further modules to import. Requests and answers are JSON
lines; a script sees what `python script arguments` would show it, and of several ranks what torchrun would set. No
thread runs before the fork.
"""
import atexit
import contextlib
import importlib
import json
import os
import runpy
import signal
import sys
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fakes"))
import own_group  # noqa: E402

import torch  # noqa: E402, F401
try:
    import torch._dynamo  # noqa: F401  (the first step of an optimizer imports it)
except ImportError:
    pass


def become(request, rank, port):
    """In the child: the process of that command line. A script that fails returns to the interpreter's own end. One
    that ends well leaves at once: taking down the modules of torch in a fork copies their memory, for a second."""
    os.setsid()
    os.chdir(request["cwd"])
    for name, fd in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), fd)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if request["ranks"] > 1:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(request["ranks"]),
                          MASTER_ADDR="localhost", MASTER_PORT=port)
    sys.argv = request["argv"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def wait(pids, timeout):
    """The first exit status that is not 0, as subprocess gives it, or "timeout". A rank that fails ends the others;
    nothing of the children's sessions is left."""
    deadline = time.monotonic() + timeout
    result, running = 0, set(pids)
    while running and result == 0:
        for pid in sorted(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.remove(pid)
                result = result or os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            result = result or "timeout"
        time.sleep(0.01)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    for pid in running:
        os.waitpid(pid, 0)
    return result


def main():
    for module in sys.argv[1:]:
        with contextlib.suppress(Exception):  # a program that needs it says so
            importlib.import_module(module)
    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0), "r")
    for line in iter(requests.readline, ""):
        request = json.loads(line)
        for name in ("stdout", "stderr"):
            os.truncate(os.open(request[name], os.O_WRONLY | os.O_CREAT, 0o644), 0)
        pids, port = [], own_group.free_port()
        for rank in range(request["ranks"]):
            pids.append(os.fork())
            if pids[-1] == 0:
                return become(request, rank, port)
        answers.write(json.dumps(wait(pids, request["timeout"])) + "\n")
        answers.flush()
    return None


main()
