"""A mp-trace and a Python under which torch has the device "late", as two small scripts: programs, and tools that clean
their environment, need no change."""
import os
import shlex

HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = {"MP_FAKE_CUDA_GUARDED": "1", "MP_FAKE_CUDA_LATE": "20", "MP_TRACE_TEST_DEVICE": "1"}


def script(path, *lines):
    with open(path, "w") as f:
        f.write("\n".join(["#!/bin/sh", *lines, ""]))
    os.chmod(path, 0o755)
    return path


def wrappers(folder, build, python, **settings):
    """(mp-trace with the test adapters of a build, Python with the device), made in `folder`."""
    library = os.path.join(build, "tests/fakes/torch/late_device.so")
    values = {**SETTINGS, "MP_LATE_DEVICE": library, **settings}
    tool = shlex.quote(os.path.join(build, "bin/mp-trace"))
    adapters = shlex.quote(os.path.join(build, "test-adapters"))
    # mp-trace puts a folder of its own on PYTHONPATH.
    return (script(os.path.join(folder, "mp-trace"), 'case "$1" in',
                   f'  -*) exec {tool} --adapters {adapters} "$@" ;;', f'  *) exec {tool} "$@" ;;', "esac"),
            script(os.path.join(folder, "python3"),
                   *[f"export {name}={shlex.quote(value)}" for name, value in values.items()],
                   f'export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}"{shlex.quote(HERE)}',
                   f'exec {shlex.quote(python)} "$@"'))
