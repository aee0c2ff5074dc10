"""Is each bug real? Runs every program with its bug, with its fix and in fp32, without any tool, and compares.

    damage.py [--cases PATTERNS] [--out docs/evaluation.md]
"""
import argparse
import fnmatch
import math
import os
import re
import sys
import tempfile

import page
import programs

LOSS = re.compile(r"^step \d+ (?:rank 0 )?loss (\S+)", re.M)
VALUE = re.compile(r"^(?!step|end)(\w+) (\S+)$", re.M)
APART = re.compile(r"^end rank [1-9]\d* apart (\S+)$", re.M)


def read(case, python, *more):
    with tempfile.TemporaryDirectory() as folder:
        status, output = programs.run(programs.command(case, python, *more), folder)
    if status != 0:
        raise SystemExit(f"{case.name} {' '.join(more)} ended with {status}:\n{output[-2000:]}")
    losses = [float(x) for x in LOSS.findall(output)]
    named = VALUE.findall(output) or [("apart", x) for x in APART.findall(output)]
    return losses[-1], named[0] if named else ("", "nan")


def number(x):
    return "nan" if math.isnan(x) else f"{x:.4g}"


def row(case, python):
    runs = [read(case, python, *more) for more in ((), ("--fixed",), ("--precision", "fp32"))]
    name = runs[0][1][0]
    values = [number(float(r[1][1])) if name else "" for r in runs]
    return [case.name, case.why, *(number(r[0]) for r in runs), name, *values]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=os.path.join(programs.ROOT, ".venv", "bin", "python"))
    parser.add_argument("--cases", default="*")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    lines = ["| program | what is wrong | last loss: bug | fix | fp32 | damaged value | bug | fix | fp32 |",
             "|" + "---|" * 9]
    for case in programs.load():
        if not case.control and any(fnmatch.fnmatchcase(case.name, p) for p in options.cases.split(",")):
            lines.append("| " + " | ".join(page.cell(c) for c in row(case, options.python)) + " |")
            print(lines[-1], flush=True)
    if options.out:
        text = f"Measured {page.machine()}:\n\n```sh\npython3 tests/evaluation/damage.py\n```\n\n" + "\n".join(lines)
        page.write(options.out, "damage", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
