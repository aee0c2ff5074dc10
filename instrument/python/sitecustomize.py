"""First on PYTHONPATH below `mp-trace --`: starts mp-trace's part in Python, then makes room.

Python imports one sitecustomize, the first it finds. This one takes its own folder off sys.path (children
still get it from PYTHONPATH) and imports the next sitecustomize in its place. Where there is none, that
import fails as it does without us, and `site` ignores it as it does then: afterwards sys.modules holds the
user's sitecustomize or none at all. Errors of the user's own pass through; errors of ours do not leave.
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
