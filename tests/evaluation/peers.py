"""The results of the other tools for the three seeded bugs and the clean run.

    peers.py [--python build/peers-venv/bin/python] [--out docs/evaluation.md]

tests/evaluation/peers-venv installs them. Exit status 77 without it.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import page
import programs

TOOLS = ("hooks", "huggingface", "huggingface-blocks", "detect_anomaly", "debugmode", "msprobe")
TITLES = {"hooks": "hooks written by hand", "huggingface": "transformers DebugUnderflowOverflow",
          "huggingface-blocks": "the same around model.blocks only",
          "detect_anomaly": "autograd.set_detect_anomaly", "debugmode": "torch DebugMode with norms",
          "msprobe": "msprobe statistics and overflow_check"}
RUNS = {"clean": [], "clean fp16": ["--dtype", "fp16"], **{bug: ["--bug", bug] for bug in programs.SEEDED}}


def said(tool, status, output):
    """The tool's answer in one cell."""
    ours = [line.removeprefix("peer: ") for line in output.splitlines() if line.startswith("peer: ")]
    lines = output.strip().splitlines()
    if tool.startswith("huggingface"):
        batch = re.search(r"Detected inf/nan during batch_number=(\d+)", output)
        names = re.findall(r"^\s*(\S+ \w+)$", output, re.M)
        where = f"batch {batch[1]}, last frame {names[-1]}" if batch and names else ""
        return f"{where}; aborts" if status else "silent"
    if tool == "detect_anomaly":
        return f"{lines[-1][:110]}; aborts" if status else "silent"
    if status:
        return f"ended with {status}: {lines[-1][:110] if lines else ''}"
    if tool == "hooks":
        return "; ".join(ours) if len(ours) > 1 else "silent"
    if tool == "msprobe":
        answers = {}
        for line in ours:
            step, _, names = line.partition(": ")
            answers.setdefault(names, []).append(step.removeprefix("step"))
        return "; ".join(f"{names} (steps {', '.join(steps)})" for names, steps in answers.items())
    return ours[-1] if ours else "silent"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=os.path.join(programs.ROOT, "build", "peers-venv", "bin", "python"))
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if not os.path.exists(options.python):
        print(f"skipped: no {options.python}; tests/evaluation/peers-venv makes it")
        return 77
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_run.py")
    rows = []
    for tool in options.tools.split(","):
        cells = []
        for name, words in RUNS.items():
            with tempfile.TemporaryDirectory() as folder:
                status, output = programs.run([options.python, script, tool, *words], folder)
            cells.append(said(tool, status, output))
            print(f"{tool}: {name}: {cells[-1]}", flush=True)
        rows.append("| " + " | ".join(page.cell(c) for c in [TITLES[tool], *cells]) + " |")
    if options.out:
        head = "| tool | " + " | ".join(RUNS) + " |\n|" + "---|" * (len(RUNS) + 1)
        listed = subprocess.run([options.python, "-m", "pip", "freeze"], capture_output=True, text=True).stdout
        versions = re.findall(r"^((?:torch|transformers|mindstudio-probe)==\S+)$", listed, re.M)
        text = (f"Measured {page.machine()}; {', '.join(versions)}:\n\n```sh\ntests/evaluation/peers-venv && "
                "python3 tests/evaluation/peers.py\n```\n\n" + "\n".join([head, *rows]))
        page.write(options.out, "peers", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
