"""zero1_gpt, a CUDA program without torch, under mp-trace: the same output as without, and each defect by its rule.

    cuda_program.py --mp-trace BIN --program ZERO1_GPT --libraries DIR:DIR

DIR: cuBLAS, NCCL and the CUDA runtime of a toolkit or of PyTorch's packages, or tests/fakes/cuda/lib of a build.
Prints a line for each check, "ok" or "RED" first. One rank: NCCL refuses two on one GPU.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--mp-trace", "--program", "--libraries"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
    env["LD_LIBRARY_PATH"] = options.libraries
    tool, program = os.path.abspath(options.mp_trace), os.path.abspath(options.program)
    red = False
    with tempfile.TemporaryDirectory(prefix="mp-cuda-") as work:
        def run(*command):
            return subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, timeout=120)

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
