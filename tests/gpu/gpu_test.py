"""mp-trace on GPUs: is the traced run the untraced one, and is the twin the fp32 run?

    gpu_test.py --mp-trace BIN [--python EXE] [--device late] [CASE...]

Deterministic algorithms, TF32 off, collectives of NCCL. With PyTorch's own ("math") attention everything is compared
bit for bit. With whatever attention torch picks the kernels of bf16 and fp32 differ, and the twin may have to
start again from the program's values: its losses must then be within BOUND of the fp32 run's. Cases of two ranks need
two GPUs. --device late: the device of tests/fakes/torch instead of GPUs, for which wrap.py there makes BIN and EXE.
Exit status: 0 as promised, 1 not, 77 where no GPU can be used, with the reason on stdout.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "truth"))
import compare
import runs
from cases import Case

# One rounding to bf16, relative: a twin that is further away follows no fp32 run.
BOUND = 2.0 ** -8
CUDA = """
import sys
try:
    import torch
except ImportError as e:
    sys.exit(f"{sys.executable} has no torch: {e}")
if not torch.cuda.is_available():
    sys.exit(f"torch {torch.__version__} sees no GPU")
if not torch.distributed.is_nccl_available():
    sys.exit(f"torch {torch.__version__} has no NCCL")
print(torch.cuda.device_count(), torch.__version__, torch.cuda.get_device_name())
"""
LATE = """
import torch
torch.ones(1, device="late")
print(2, torch.__version__, "the device of tests/fakes/torch")
"""
PROBES = {"cuda": CUDA, "late": LATE}
# Name: options of device_gpt.py, ranks.
CASES = {
    "attention math": (("--attention", "math"), 1),
    "attention any": (("--attention", "any"), 1),
    "ddp, one rank": (("--parallel", "ddp"), 1),
    "ddp, bf16 hook, one rank": (("--parallel", "ddp-bf16"), 1),
    "fsdp1, one rank": (("--parallel", "fsdp1"), 1),
    "fsdp2, one rank": (("--parallel", "fsdp2"), 1),
    "ddp": (("--parallel", "ddp"), 2),
    "ddp, bf16 hook": (("--parallel", "ddp-bf16"), 2),
    "fsdp2": (("--parallel", "fsdp2"), 2),
    "fsdp2, two dtypes": (("--parallel", "fsdp2-mix"), 2),
}


def found(python, device="cuda"):
    """(number of devices, what they are), or (0, why there are none)."""
    if not os.path.exists(python):
        return 0, f"{python} is missing"
    probe = subprocess.run([python, "-c", PROBES[device]], capture_output=True, text=True, env=runs.environment(),
                           timeout=120)
    if probe.returncode:
        return 0, (probe.stderr.strip().splitlines() or ["the probe failed"])[-1]
    count, told = probe.stdout.strip().split(None, 1)
    return int(count), told


def environment():
    # cuBLAS is deterministic only with workspaces of a fixed size.
    return runs.environment({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})


def commands(options, name):
    """{plain, traced, fp32: command} of a case."""
    more, ranks = CASES[name]
    program = [os.path.join(HERE, "device_gpt.py"), "--device", options.device, *more, "--save", "result.%r",
               "--steps", str(options.steps)]
    if options.device == "late" and ranks > 1:  # what torchrun adds is shown on the CPU
        program = runs.ranks_of(ranks, [options.python, *program])
    else:
        torchrun = [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        program = [*(torchrun if ranks > 1 else [options.python]), *program]
    trace = [options.mp_trace, "--mode", "trajectory", "-o", "trace", "--save-twin", "twin.%r", "--"]
    return {"plain": program, "traced": trace + program, "fp32": program + ["--precision", "fp32"]}


def run_all(options, name, work):
    """{kind: (status, stdout, stderr)} of the untraced, traced and fp32 run, and their folders."""
    folders = {kind: os.path.join(work, name, kind) for kind in ("plain", "traced", "fp32")}
    return {kind: runs.run(command, folders[kind], environment())
            for kind, command in commands(options, name).items()}, folders


def largest_loss_gap(fp32_folder, report):
    expected = compare.losses_of(compare.read_safetensors(os.path.join(fp32_folder, "result.0")))
    twin = runs.twin_losses(report, "first").get(0, [])
    if len(twin) != len(expected) or None in twin:
        return float("inf")
    return max(abs(x - y) / abs(y) for x, y in zip(twin, expected))


def check(options, name, work):
    """Returns the list of errors."""
    case = Case(name.replace(" ", "-"), "device_gpt.py", roots="first", ranks=CASES[name][1])
    result = runs.Result(case, 1)
    done, folders = run_all(options, name, work)
    for kind in ("plain", "fp32"):
        if done[kind][0] != 0:
            return [f"{kind} run: exit {done[kind][0]}: {runs.tail(done[kind][2])}"]
    runs.check_transparent(result, folders["plain"], folders["traced"], done["plain"], done["traced"])
    runs.check_discriminates(result, case, folders["plain"], folders["fp32"])
    told = subprocess.run([options.mp_trace, "report", "trace", "--json", "-"], cwd=folders["traced"],
                          capture_output=True, timeout=runs.TIMEOUT, env=runs.environment())
    if told.returncode != 0:
        return [*result.faults, f"no report: {runs.tail(told.stderr)}; the run said: {runs.tail(done['traced'][2])}"]
    report = json.loads(told.stdout)
    if name != "attention any":
        runs.check_twin(result, case, folders["traced"], folders["fp32"], report)
        return result.faults + result.wrong()[:5]
    gap = largest_loss_gap(folders["fp32"], report)
    print(f"{name}: largest relative gap of a loss {gap:.2e}, bound {BOUND:.2e}")
    return result.faults + ([] if gap <= BOUND else [f"the twin's losses are {gap:.1e} from the fp32 run's"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--mp-trace", required=True)
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "bin", "python"))
    parser.add_argument("--device", choices=("cuda", "late"), default="cuda")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="cases side by side")
    options = parser.parse_args()
    options.mp_trace = os.path.realpath(options.mp_trace)
    devices, told = found(options.python, options.device)
    print(told if devices else "skipped: " + told)
    if not devices:
        return 77
    red = False
    with tempfile.TemporaryDirectory(prefix="mp-gpu-") as work:
        here = [name for name in options.cases or CASES if CASES[name][1] <= devices]
        for name in options.cases or CASES:
            if name not in here:
                print(f"{name}: needs {CASES[name][1]} GPUs")
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for name, faults in zip(here, pool.map(lambda name: check(options, name, work), here)):
                red |= bool(faults)
                verdict = "RED" if faults else "ok "
                print(f"{verdict} {name}: {'; '.join(faults) or 'as promised'}", flush=True)
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
