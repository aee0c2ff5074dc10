"""What mp-trace costs a CUDA program without torch, per call of a library, on fakes of NVIDIA's libraries.

    script/bench cuda-calls [--build build/release]
"""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CALLS = {"empty": "an empty call", "range": "an NVTX range, pushed and popped", "matmul": "cublasLtMatmul",
         "all_reduce": "ncclAllReduce"}
COUNTED = ["--steps", "1000000"]  # a step that never comes: calls are counted, nothing is measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    subprocess.run(["cmake", "--build", options.build, "--target", "mp_tools", "cuda_calls", "fake_cupti"], check=True,
                   stdout=subprocess.DEVNULL)
    tool, program = (os.path.join(options.build, "bin", name) for name in ("mp-trace", "cuda_calls"))
    env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
    env["LD_LIBRARY_PATH"] = os.path.join(options.build, "tests/fakes/cuda/lib")
    best = {}
    with tempfile.TemporaryDirectory(prefix="mp-calls-") as work:
        trace = [os.path.abspath(tool), "-q", "-o", "run"]
        variants = {"untraced": [], "counted": [*trace, *COUNTED, "--"], "measured": [*trace, "--"]}
        for _ in range(options.rounds):
            for name, prefix in variants.items():
                done = subprocess.run([*prefix, os.path.abspath(program), "200"], check=True, cwd=work, env=env,
                                      capture_output=True, text=True)
                for line in done.stdout.splitlines():
                    call, ns = line.split("\t")
                    best[name, call] = min(best.get((name, call), 1e30), float(ns))
    print("| call | untraced, ns | counted, ns | measured, ns |\n|---|---:|---:|---:|")
    for call, text in CALLS.items():
        print(f"| {text} | " + " | ".join(f"{best[name, call]:.0f}" for name in variants) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
