"""What mp-trace costs: the tables of docs/performance.md. Ratios of one run on one machine, never a test.

    script/bench trace [--rounds 5] [--only twin32,twin16,measure,watch,off,integers,start] [--build build/release]

Every figure is CPU seconds of the fastest step, minimum over interleaved rounds of separate processes; where
sampled steps count ("mean step"), of the mean of 96 steps.
"""
import argparse
import glob
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TRACE = ""  # of the build that is measured; its adapters lie beside it
PYTHON = os.path.join(ROOT, ".venv/bin/python")
STEP = os.path.join(HERE, "gpt_step.py")
OP = os.path.join(HERE, "op_cost.py")
CAST = os.path.join(HERE, "cast_cost.py")


def start(program, mode, arguments, folder):
    """The last line of a program's output, as JSON; mode "" is untraced."""
    command = [PYTHON, program, *arguments]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    adapters = []
    if mode.endswith(" unmeasured"):  # only the test adapter can leave measuring out
        adapters = ["--adapters", os.path.join(os.path.dirname(os.path.dirname(TRACE)), "test-adapters")]
        environment["MP_TRACE_TEST_DISABLE_RULE"] = "measure"
    if mode:
        command = [TRACE, "-q", "--mode", mode.split()[0], *adapters, "-o", folder + "/run", "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run(mode, arguments, keep):
    """CPU seconds per step, loss and parameters of one process; `keep` receives values from the recording."""
    folder = tempfile.mkdtemp(prefix="mp-bench-")
    result = start(STEP, mode, arguments, folder)
    if mode and glob.glob(folder + "/run/*.mpt"):  # one that disarms itself before its first step records nothing
        keep["bytes"] = sum(os.path.getsize(f) for f in glob.glob(folder + "/run/*.mpt")) / 1e3
        text = subprocess.run([TRACE, "report", "--text", folder + "/run"], capture_output=True, text=True).stdout
        done = subprocess.run([TRACE, "report", "--json", "-", folder + "/run"], capture_output=True, text=True)
        report = json.loads(done.stdout)
        keep["ops"] = report["coverage"]["ops"] / max(1, len(report["steps"]))
        keep["memory"] = [line for line in text.splitlines() if "held at the end" in line]
    shutil.rmtree(folder, ignore_errors=True)
    return result


def table(title, variants, rounds, base):
    best, losses, keep = {}, {}, {}
    for _ in range(rounds):
        for name, (mode, arguments) in variants.items():
            notes = keep.setdefault(name, {})
            result = run(mode, arguments, notes)
            best[name] = min(best.get(name, 1e9), result["seconds"])
            losses[name] = result["loss"]
    print(f"\n{title} ({result['parameters'] / 1e6:.2f} M parameters)\n")
    print("| variant | CPU ms/step | ratio | loss unchanged |\n|---|---|---|---|")
    for name, seconds in best.items():
        plain = next(n for n, (m, a) in variants.items()
                     if not m and ("--bf16" in a) == ("--bf16" in variants[name][1]))
        same = "-" if name == plain else "yes" if losses[name] == losses[plain] else "NO"
        print(f"| {name} | {1000 * seconds:.2f} | {seconds / base(best):.3f} | {same} |")
    for name, notes in keep.items():
        for line in notes.get("memory", []):
            print(f"\n{name}: {line.strip()}")
    return best


def op_table(rounds):
    """Attached but off is too cheap to see in a step: the cost of one op, times the ops of a step."""
    model = "--width 64 --layers 4 --context 64 --batch 8 --steps 20 --bf16".split()
    variants = {"untraced": ("", []), "attached but off": ("watch", ["--off"]), "watch": ("watch", [])}
    best, keep = {}, {}
    for _ in range(rounds):
        for name, (mode, arguments) in variants.items():
            folder = tempfile.mkdtemp(prefix="mp-bench-")
            best[name] = min(best.get(name, 1e9), start(OP, mode, arguments, folder))
            shutil.rmtree(folder, ignore_errors=True)
    step = 1e6 * min(run("", model, {})["seconds"] for _ in range(rounds))
    run("watch", model, keep)
    print(f"\nThe smallest op, and what that is in the bf16 step above ({keep['ops']:.0f} ops, {step / 1e3:.2f} ms)\n")
    print("| variant | CPU us/op | extra us/op | of a step |\n|---|---|---|---|")
    for name, cost in best.items():
        extra = cost - best["untraced"]
        print(f"| {name} | {cost:.3f} | {extra:.3f} | {100 * extra * keep['ops'] / step:.2f} % |")


def cast_table(rounds):
    """What the count of lost integers (MPT015) adds to a cast of a sampled step; it stops at a value that is none."""
    print("\nA cast of 65,536 values to bf16 in a sampled step\n")
    print("| variant | other values, CPU us | integers, CPU us | ratio |\n|---|---|---|---|")
    for mode in ("", "watch", "trajectory"):
        folder = tempfile.mkdtemp(prefix="mp-bench-")
        others, whole = map(min, zip(*(start(CAST, mode, [], folder) for _ in range(rounds))))
        shutil.rmtree(folder, ignore_errors=True)
        print(f"| {mode or 'untraced'} | {others:.1f} | {whole:.1f} | {whole / others:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="twin32,twin16,measure,watch,off,integers,start")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    options = parser.parse_args()
    global TRACE
    TRACE = os.path.join(os.path.abspath(options.build), "bin/mp-trace")
    for path in (TRACE, PYTHON):
        if not os.path.exists(path):
            sys.exit(f"{path} is missing: run MP_TORCH=2.11 script/setup first")
    wanted = options.only.split(",")
    with open("/proc/cpuinfo") as f:
        flags = f.read()
    simd = "AVX512_BF16" if "avx512_bf16" in flags else "AVX2" if "avx2" in flags else platform.machine()
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {simd}, torch 2.11, 1 thread, minimum of "
          f"{options.rounds} interleaved rounds, load {os.getloadavg()[0]:.1f}")
    if "twin32" in wanted:
        large = "--width 512 --layers 4 --context 128 --batch 4 --optimizer fused --steps 12".split()
        table("Twin of an fp32 run", {"fp32": ("", large), "twin, nothing measured": ("trajectory unmeasured", large),
                                      "twin": ("trajectory", large)}, options.rounds, lambda best: best["fp32"])
    if "twin16" in wanted:
        small = "--width 128 --layers 2 --context 64 --batch 2 --steps 20".split()
        table("Twin of a bf16 run, ratio to bf16 + fp32",
              {"bf16": ("", small + ["--bf16"]), "fp32": ("", small),
               "twin, nothing measured": ("trajectory unmeasured", small + ["--bf16"]),
               "twin": ("trajectory", small + ["--bf16"])}, options.rounds, lambda best: best["bf16"] + best["fp32"])
    small = "--width 64 --layers 4 --context 64 --batch 8 --bf16 --mean".split()
    if "measure" in wanted:
        table("What default measuring adds to a twin, mean step of a bf16 run",
              {"bf16": ("", small), "twin, nothing measured": ("trajectory unmeasured", small),
               "twin": ("trajectory", small)}, options.rounds, lambda best: best["twin, nothing measured"])
        table("Watching with statistics, mean step of the same run", {"bf16": ("", small), "watch": ("watch", small)},
              options.rounds, lambda best: best["bf16"])
    if "watch" in wanted:
        model = "--width 64 --layers 4 --context 64 --batch 8 --steps 20 --bf16".split()
        table("Watching a bf16 run, beside what else one can install",
              {"bf16": ("", model), "mp-trace, attached but off": ("watch", model + ["--off"]),
               "mp-trace watch": ("watch", model), "hand-written hooks": ("", model + ["--peer", "hooks"]),
               "set_detect_anomaly": ("", model + ["--peer", "anomaly"]),
               "DebugMode": ("", model + ["--peer", "debugmode"])}, options.rounds, lambda best: best["bf16"])
    if "off" in wanted:
        op_table(options.rounds)
    if "integers" in wanted:
        cast_table(options.rounds)
    if "start" in wanted:
        print("\nA process that never sees torch\n", flush=True)
        subprocess.run([sys.executable, os.path.join(ROOT, "tests/instrument/preload/inert_cost.py"),
                        os.path.join(os.path.abspath(options.build), "lib/mp-trace/libmptrace_preload.so")])


main()
