# Run by `mp-trace doctor` as `EXE -c <this>` with our preload and our shim in the environment: did they arrive?
import json
import sys


def preloaded():
    with open("/proc/self/maps", errors="replace") as maps:
        return any(line.rstrip("\n").endswith("/libmptrace_preload.so") for line in maps)


shim = sys.modules.get("sitecustomize")
answer = {"preload": preloaded(), "sitecustomize": str(getattr(shim, "__file__", "") or "")}
sys.stdout.write("\nmp-trace-doctor:reach " + json.dumps(answer) + "\n")
