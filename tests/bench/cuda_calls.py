"""What mp-trace costs a CUDA program without torch, by source: per call of a library and per step of zero1_gpt, on
fakes of NVIDIA's libraries. Each column has the sources of those before it. Medians over interleaved rounds.

    script/bench cuda-calls [--build build/release]
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CALLS = {"empty": "an empty call", "range": "an NVTX range, pushed and popped", "launch": "cudaLaunchKernel",
         "matmul": "cublasLtMatmul", "all_reduce": "ncclAllReduce"}
COUNTED = ["--steps", "1000000"]  # a step that never comes: calls are counted, nothing is measured
# A library of another tool keeps a place, which is how a source is left out.
NVTX, CUDA, NCCL = ({name: "/nowhere/another_tool.so"}
                    for name in ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"))
VARIANTS = {"off": (None, {}), "calls": (COUNTED, {**NVTX, **CUDA, **NCCL}), "ranges": (COUNTED, {**CUDA, **NCCL}),
            "launches": (COUNTED, NCCL), "algorithms": (COUNTED, {}),
            "times": ([*COUNTED, "--device-times"], {}), "figures": ([], {})}
STEPS = 12  # of which nine count


def prefix_of(name, tool):
    """What stands before a program to run it with the sources of a column, and what its environment has more."""
    flags, places = VARIANTS[name]
    return ([] if flags is None else [tool, "-q", "-o", "run", *flags, "--"]), places


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-build", action="store_true", help="what is built is up to date")
    options = parser.parse_args()
    if not options.no_build:
        targets = ["mp_tools", "cuda_calls", "zero1_gpt", "fake_cupti"]
        subprocess.run(["cmake", "--build", options.build, "--target", *targets], check=True, stdout=subprocess.DEVNULL)
    tool, calls, trains = (os.path.join(os.path.abspath(options.build), "bin", name)
                           for name in ("mp-trace", "cuda_calls", "zero1_gpt"))
    env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
    env["LD_LIBRARY_PATH"] = os.path.join(os.path.abspath(options.build), "tests/fakes/cuda/lib")
    figures = {}
    with tempfile.TemporaryDirectory(prefix="mp-calls-") as work:
        def run(name, *program):
            prefix, places = prefix_of(name, tool)
            return subprocess.run([*prefix, *program], check=True, cwd=work, env={**env, **places}, capture_output=True,
                                  text=True)

        for _ in range(options.rounds):
            for name in VARIANTS:
                for line in run(name, calls, "200").stdout.splitlines():
                    call, ns = line.split("\t")
                    figures.setdefault((name, call), []).append(float(ns))
                step = run(name, trains, "--steps", str(STEPS), "--clock").stderr
                figures.setdefault((name, "step"), []).append(float(step))
    print(f"load {os.getloadavg()[0]:.1f}\n")
    print("| call, ns | " + " | ".join(VARIANTS) + " |\n|---|" + "---:|" * len(VARIANTS))
    for call, text in [*CALLS.items(), ("step", "a step of zero1_gpt, µs")]:
        print(f"| {text} | " + " | ".join(f"{statistics.median(figures[name, call]):.0f}" for name in VARIANTS) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
