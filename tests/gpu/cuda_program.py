"""zero1_gpt, a CUDA program without torch, under mp-trace: the same output as without, and each defect by its rule.

    cuda_program.py --mp-trace BIN --program ZERO1_GPT --libraries DIR:DIR

DIR: cuBLAS, NCCL and the CUDA runtime of a toolkit or of PyTorch's packages, or tests/fakes/cuda/lib of a build.
Prints a line for each check, "ok" or "RED" first. One rank: NCCL refuses two on one GPU.

With --events DIR it also writes what the sources told, as DIR/NAME.events, for testdata/events: cuda_replay_test
replays those. --ranks 2 is for the fakes.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

CHECKS = ((("--precision", "fp32"), ""), (("--precision", "bf16"), ""), (("--precision", "fp16"), ""),
          (("--precision", "fp16", "--overflow-at", "3", "1"), "MPT001"),
          (("--precision", "fp16", "--half-accumulator"), "MPT071"), (("--precision", "bf16", "--split-k"), "MPT072"),
          (("--precision", "bf16", "--no-guard", "--overflow-at", "3", "1"), "MPT074"),
          (("--precision", "bf16", "--no-master", "--lr", "1e-4"), "MPT040"), (("--precision", "bf16", "--graph"), ""))


STREAMS = {"bf16": ("--precision", "bf16"), "fp16_half_sums": ("--precision", "fp16", "--half-accumulator"),
           "average": ("--average",)}


def record(run, options, tool, program, env, work):
    """The events of rank 0 of some runs, each behind a line that says where it was recorded."""
    try:
        told = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False)
        where = told.stdout.strip() or "fakes of NVIDIA's libraries, no GPU"
    except FileNotFoundError:
        where = "fakes of NVIDIA's libraries, no GPU"
    os.makedirs(options.events, exist_ok=True)
    for name, flags in STREAMS.items():
        words = [*flags, "--steps", "3", "--spawn", str(options.ranks)]
        env["MP_TRACE_EVENTS"] = os.path.join(work, name)
        run(tool, "-q", "-o", f"run-{name}", "--", program, *words)
        del env["MP_TRACE_EVENTS"]
        for stream in (os.path.join(work, f) for f in os.listdir(work) if f.startswith(name + ".")):
            with open(stream, encoding="utf-8") as file:
                events = file.read()
            if "rank\t0\t" not in events:
                continue
            with open(os.path.join(options.events, f"{name}_{options.ranks}.events"), "w", encoding="utf-8") as file:
                file.write(f"# zero1_gpt {' '.join(words)}, rank 0; recorded on: {where}\n{events}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--mp-trace", "--program", "--libraries"):
        parser.add_argument(name, required=True)
    parser.add_argument("--events", help="a directory for streams of events")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
    env["LD_LIBRARY_PATH"] = options.libraries
    tool, program = os.path.abspath(options.mp_trace), os.path.abspath(options.program)
    red = False
    with tempfile.TemporaryDirectory(prefix="mp-cuda-") as work:
        def run(*command):
            return subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, timeout=120)

        if options.events:
            record(run, options, tool, program, env, work)
        for number, (flags, rule) in enumerate(CHECKS):
            plain = run(program, "--steps", "12", *flags)
            if plain.returncode != 0:
                print("RED", *flags, "does not run:", plain.stderr.strip()[-200:], flush=True)
                red = True
                continue
            traced = run(tool, "-q", "-o", f"run{number}", "--", program, "--steps", "12", *flags)
            same = (traced.returncode, traced.stdout) == (plain.returncode, plain.stdout)
            told = run(tool, "report", f"run{number}", "--json", "-")
            report = json.loads(told.stdout) if told.returncode == 0 else {"findings": [], "coverage": {"ops": 0}}
            found = [f["rule"] for f in report["findings"] if f["severity"] != "note"]
            # What a defect costs is measured, and may be little here.
            named = {f["rule"] for f in report["findings"]}
            good = same and (rule in named if rule else not found) and report["coverage"]["ops"] > 0
            red |= not good
            print("ok" if good else "RED", " ".join(flags) + ":", "same output," if same else "ANOTHER OUTPUT,",
                  f"{report['coverage']['ops']} calls,", ", ".join(found) or "nothing found", flush=True)
    return red


if __name__ == "__main__":
    sys.exit(main())
