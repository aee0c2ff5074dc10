"""mp-trace on a GPU: is the traced run the untraced one, and is the twin the fp32 run?

    gpu_test.py --mp-trace BIN [--python EXE]

One NCCL rank, deterministic algorithms, TF32 off. With PyTorch's own ("math") attention everything is compared
bit for bit. With whatever attention torch picks the kernels of bf16 and fp32 differ, and the twin may have to
start again from the program's values: its losses must then be within BOUND of the fp32 run's.
Exit status: 0 as promised, 1 not, 77 where no GPU can be used, with the reason on stdout.
"""
import argparse
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
PROBE = """
import sys
try:
    import torch
except ImportError as e:
    sys.exit(f"{sys.executable} has no torch: {e}")
if not torch.cuda.is_available():
    sys.exit(f"torch {torch.__version__} sees no GPU")
if not torch.distributed.is_nccl_available():
    sys.exit(f"torch {torch.__version__} has no NCCL")
print(torch.__version__, torch.cuda.get_device_name())
"""


def reason_to_skip(python):
    """The reason why nothing can run here, or ""; prints the device."""
    if not os.path.exists(python):
        return f"{python} is missing"
    probe = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, env=runs.environment(), timeout=120)
    if probe.returncode:
        return (probe.stderr.strip().splitlines() or ["the probe failed"])[-1]
    print(probe.stdout.strip())
    return ""


def environment():
    # cuBLAS is deterministic only with workspaces of a fixed size.
    return runs.environment({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})


def run_all(options, attention, work):
    """(status, stdout, stderr) of the untraced, traced and fp32 run, and their folders."""
    program = [options.python, os.path.join(HERE, "nccl_gpt.py"), "--attention", attention, "--save", "result.%r"]
    trace = [options.mp_trace, "--mode", "trajectory", "-o", "trace", "--save-twin", "twin.%r", "--"]
    commands = {"plain": program, "traced": trace + program, "fp32": program + ["--precision", "fp32"]}
    folders = {kind: os.path.join(work, attention, kind) for kind in commands}
    return {kind: runs.run(command, folders[kind], environment()) for kind, command in commands.items()}, folders


def largest_loss_gap(fp32_folder, report):
    expected = compare.losses_of(compare.read_safetensors(os.path.join(fp32_folder, "result.0")))
    twin = runs.twin_losses(report, "first").get(0, [])
    if len(twin) != len(expected) or None in twin:
        return float("inf")
    return max(abs(x - y) / abs(y) for x, y in zip(twin, expected))


def check(options, attention, work):
    """Returns the list of errors."""
    case = Case("nccl-" + attention, "nccl_gpt.py", roots="first")
    result = runs.Result(case, 1)
    done, folders = run_all(options, attention, work)
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
    if attention == "math":
        runs.check_twin(result, case, folders["traced"], folders["fp32"], report)
        return result.faults + result.wrong()[:5]
    gap = largest_loss_gap(folders["fp32"], report)
    print(f"attention {attention}: largest relative gap of a loss {gap:.2e}, bound {BOUND:.2e}")
    return result.faults + ([] if gap <= BOUND else [f"the twin's losses are {gap:.1e} from the fp32 run's"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", required=True)
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "bin", "python"))
    options = parser.parse_args()
    options.mp_trace = os.path.realpath(options.mp_trace)
    reason = reason_to_skip(options.python)
    if reason:
        print("skipped: " + reason)
        return 77
    red = False
    with tempfile.TemporaryDirectory(prefix="mp-gpu-") as work:
        for attention in ("math", "any"):
            faults = check(options, attention, work)
            red |= bool(faults)
            verdict = "RED" if faults else "ok "
            print(f"{verdict} attention {attention}: {'; '.join(faults) or 'as promised'}", flush=True)
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
