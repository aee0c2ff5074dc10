# Run by `mp-trace doctor` as `EXE -c <this> SHIM_DIRECTORY` with our preload and our shim in the
# environment, to test whether both are loaded. The shim removes its own folder from sys.path when it
# starts, so a folder that is still there did not run.
import json
import os
import sys


def preloaded():
    with open("/proc/self/maps", errors="replace") as maps:
        return any(line.rstrip("\n").endswith("/libmptrace_preload.so") for line in maps)


def shim_ran(folder):
    asked = folder in os.environ.get("PYTHONPATH", "").split(os.pathsep)
    ignored = sys.flags.ignore_environment or sys.flags.no_site or sys.flags.isolated
    left = [os.path.abspath(entry) for entry in sys.path if entry]  # site may have rewritten it
    return bool(asked and not ignored and os.path.abspath(folder) not in left)


other = sys.modules.get("sitecustomize")
answer = {"preload": preloaded(), "shim": shim_ran(sys.argv[1]), "sitecustomize": str(getattr(other, "__file__", ""))}
sys.stdout.write("\nmp-trace-doctor:reach " + json.dumps(answer) + "\n")
