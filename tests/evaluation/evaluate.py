"""Scores mp-trace on programs with known bugs: does it report the bug, and is it silent without one?

    evaluate.py --mp-trace BIN --quick                      the three seeded bugs, their fixes and the controls
    evaluate.py --mp-trace BIN --seeds 5 --out docs/evaluation.md
    evaluate.py --mp-trace BIN --cases rope,ema --keep DIR

Exit status: 0 when the result matches known_misses.toml, 1 when not, 77 when the interpreter has no torch.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib

import page
import programs
import score


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", required=True)
    parser.add_argument("--python", default=os.path.join(programs.ROOT, ".venv", "bin", "python"))
    parser.add_argument("--cases", default="*", help="patterns, separated by commas")
    parser.add_argument("--quick", action="store_true", help="only the three seeded bugs and the controls")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="another device runs the programs that know --device")
    parser.add_argument("--mode", default="trajectory", help="of mp-trace")
    parser.add_argument("--keep", default="", help="leave the runs in this folder; those it has are judged again")
    parser.add_argument("--out", default="", help="write the page's part about mp-trace")
    return parser.parse_args()


def known_misses():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_misses.toml"), "rb") as f:
        return tomllib.load(f)


def trace(options, case, fixed, seed, folder):
    """One program under mp-trace, its report and its gate."""
    outcome = score.Outcome(case, fixed, seed)
    words = programs.command(case, options.python, "--seed", str(seed), *(["--fixed"] if fixed else []),
                             *([] if options.device == "cpu" else ["--device", options.device]))
    status, output = recorded(options, words, folder)
    if status != 0:
        outcome.fault = f"the program ended with {status}: {last_line(output)}"
        return outcome
    report = subprocess.run([options.mp_trace, "report", "run", "--json", "-"], cwd=folder, capture_output=True)
    gate = subprocess.run([options.mp_trace, "gate", "run"], cwd=folder, capture_output=True)
    try:
        read = json.loads(report.stdout)
        outcome.findings = [f for f in read["findings"] if f["severity"] != "note"]
        outcome.ops = read["coverage"]["ops"]
    except (ValueError, KeyError) as error:
        outcome.fault = f"the report cannot be read ({error!r}): {last_line(report.stderr.decode())}"
        return outcome
    outcome.gate = gate.returncode
    if gate.returncode not in (0, 1):
        said = [line for line in output.splitlines() if line.startswith("mp-trace: stopped")]
        outcome.fault = f"the gate ended with {gate.returncode}: {last_line(said[0] if said else gate.stdout.decode())}"
    return outcome


def recorded(options, words, folder):
    """The run's exit status and output; a recording that is there already is not made again."""
    if os.path.isdir(os.path.join(folder, "run")):
        with open(os.path.join(folder, "output"), encoding="utf-8", errors="replace") as f:
            return 0, f.read()
    os.makedirs(folder, exist_ok=True)
    status, output = programs.run([options.mp_trace, "--mode", options.mode, "-o", "run", "--", *words], folder)
    if status != 0:
        shutil.rmtree(os.path.join(folder, "run"), ignore_errors=True)
    return status, output


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no output"


def describe(outcome):
    name = outcome.case.name + (" fixed" if outcome.fixed else "")
    said = "; ".join(page.place(f) for f in outcome.findings[:3]) or "nothing found"
    return (f"{'right' if score.right(outcome) else 'WRONG'}  {name} seed {outcome.seed}: "
            f"{outcome.fault or said}; gate {outcome.gate}")


def jobs_of(options):
    patterns = options.cases.split(",")
    for case in programs.load():
        if options.quick and not case.control and case.name not in programs.SEEDED:
            continue
        if options.device != "cpu" and case.program != "seeded_gpt.py":
            continue
        if any(fnmatch.fnmatchcase(case.name, p) for p in patterns):
            for seed in range(1, options.seeds + 1):
                for fixed in (False,) if case.control else (False, True):
                    yield case, fixed, seed


def judge(outcomes, misses):
    """The differences to known_misses.toml: misses that are not listed, and listed ones that are found."""
    wrong = []
    groups = {}
    for o in outcomes:
        groups.setdefault(page.key(o), []).append(o)
    for name, group in groups.items():
        missed = [o for o in group if not score.right(o)]
        if missed and name not in misses:
            wrong.append(f"{name}: wrong with seed {missed[0].seed}")
        if not missed and name in misses:
            wrong.append(f"{name}: right with every seed; take it out of known_misses.toml")
    return wrong


def main():
    options = parse()
    options.mp_trace = os.path.abspath(options.mp_trace)
    if not os.path.exists(options.python) or subprocess.run([options.python, "-c", "import torch"]).returncode:
        print(f"skipped: {options.python} has no torch")
        return 77
    top = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="mp-evaluation-")
    outcomes = []
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            work = [pool.submit(trace, options, case, fixed, seed,
                                os.path.join(top, f"{case.name}{'.fixed' if fixed else ''}.{seed}"))
                    for case, fixed, seed in jobs_of(options)]
            for future in work:
                outcomes.append(future.result())
                print(describe(outcomes[-1]), flush=True)
    finally:
        if not options.keep:
            shutil.rmtree(top, ignore_errors=True)
    misses = known_misses()
    wrong = judge(outcomes, misses)
    print(page.summary(outcomes), *wrong, sep="\n")
    if options.out:
        page.write(options.out, "seeded" if options.quick else "mp-trace", page.section(outcomes, misses, options))
    return 1 if wrong or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
