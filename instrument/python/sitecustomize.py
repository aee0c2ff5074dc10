"""First on PYTHONPATH below `mp-trace --`: starts the Python part of mp-trace, then loads the next sitecustomize.

Python imports the first sitecustomize that it finds. This one removes its own folder from sys.path (child processes
still get it from PYTHONPATH) and imports the next sitecustomize in its place. If there is none, that import fails as
it does without mp-trace, and `site` ignores the failure as usual: afterwards sys.modules contains the user's
sitecustomize or none. Errors in the user's module pass through; errors of our own do not leave this file.
"""
import os
import sys


def _start():
    try:
        if os.environ.get("MP_TRACE_OPTIONS"):
            import mptrace_shim  # beside this file
            mptrace_shim.start()
    except Exception as error:
        try:
            os.write(2, f"mp-trace: the Python part does not start: {error!r}\n".encode())
        except OSError:
            pass


def _leave():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != here]
    sys.path_importer_cache.pop(here, None)
    sys.modules.pop("sitecustomize", None)


_start()
_leave()
import sitecustomize  # noqa: E402,F401  the next one
