"""Children of a test, with all that they start."""
import os
import signal
import socket
import subprocess


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return str(probe.getsockname()[1])


def start(command, **more):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **more)


def end(process, timeout):
    """The exit status, or "timeout"; nothing of the process group is left afterwards."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
