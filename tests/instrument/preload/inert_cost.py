"""The cost of the inert preload library at the start of a process: `inert_cost.py LIBRARY [ROUNDS [--json]]`.

Interleaved; the minimum of ROUNDS batches with and without it. The promise is 0.2 ms per process (docs/performance.md).
The test fails only at ten times that, because timings on a shared machine vary.
"""
import json
import os
import sys
import time

BATCH = 20
PROMISE_MS = 0.2


def batch_ms(environment):
    begin = time.perf_counter()
    for _ in range(BATCH):
        pid = os.posix_spawn("/bin/true", ["true"], environment)
        os.waitpid(pid, 0)
    return (time.perf_counter() - begin) * 1e3 / BATCH


def main():
    library = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    plain = {"PATH": os.defpath}
    ways = {"without": plain, "preload": {**plain, "LD_PRELOAD": library},
            # Armed and without torch: shells, compilers and launchers below `mp-trace --`.
            "preload armed": {**plain, "LD_PRELOAD": library, "MP_TRACE_OPTIONS": "/nonexistent/options"}}
    best = {way: float("inf") for way in ways}
    for _ in range(rounds):
        for way, environment in ways.items():
            best[way] = min(best[way], batch_ms(environment))
    extra = {way: best[way] - best["without"] for way in ways if way != "without"}
    if "--json" in sys.argv:
        print(json.dumps({"ms": best, "extra_ms": extra, "promise_ms": PROMISE_MS}))
    else:
        for way, ms in best.items():
            print(f"{way:14s} {ms:7.3f} ms a process" + (f", extra {extra[way]:.3f}" if way in extra else ""))
    return 1 if max(extra.values()) > 10 * PROMISE_MS else 0


if __name__ == "__main__":
    sys.exit(main())
