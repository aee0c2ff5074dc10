"""Runs scripts in forks of one Python that has imported torch, because that import dominates a short run.

Started by runs.py for the untraced runs of one process; its arguments are further modules to import. Requests and
answers are JSON lines; a script sees what `python script arguments` would show it. No thread runs before the fork.
"""
import contextlib
import importlib
import json
import os
import runpy
import signal
import sys
import time

import torch  # noqa: F401
try:
    import torch._dynamo  # noqa: F401  (the first step of an optimizer imports it)
except ImportError:
    pass


def become(request):
    """In the child: the process of that command line. Returns as a script does, to the interpreter's own end."""
    os.setsid()
    os.chdir(request["cwd"])
    for name, fd in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), fd)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = request["argv"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


def wait(pid, timeout):
    """The exit status as subprocess gives it, or "timeout"; nothing of the child's session is left."""
    deadline = time.monotonic() + timeout
    ended, status = os.waitpid(pid, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
        ended, status = os.waitpid(pid, os.WNOHANG)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    if not ended:
        os.waitpid(pid, 0)
        return "timeout"
    return os.waitstatus_to_exitcode(status)


def main():
    for module in sys.argv[1:]:
        with contextlib.suppress(ImportError):  # a program that needs it says so
            importlib.import_module(module)
    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0), "r")
    for line in iter(requests.readline, ""):
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            return become(request)
        answers.write(json.dumps(wait(pid, request["timeout"])) + "\n")
        answers.flush()
    return None


main()
