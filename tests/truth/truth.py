"""The truth suite: is the twin the fp32 run, bit for bit, and is the traced run the untraced one?

    truth.py --mp-trace BIN --torch 2.11|debian [--cases a,b*] [--seeds N] [--long] [--out docs/truth.md]
    truth.py --mp-trace BIN --torch 2.11 --mutate     each rule of the adapter switched off must turn a case red

Each case is started by `mp-trace --` as a user would. Exit status: 0 as the table says, 1 not, 77 no such torch.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import subprocess
import sys
import tempfile
import time

import runs
import table
from cases import CASES, MUTATIONS, UNREACHABLE, in_ci

HERE = os.path.dirname(os.path.abspath(__file__))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", required=True)
    parser.add_argument("--torch", choices=("2.11", "debian"), required=True)
    parser.add_argument("--python", default="", help="an interpreter with that torch; found by default")
    parser.add_argument("--sharded-gpt", default="", help="the C++ program; without it its cases are left out")
    parser.add_argument("--cases", default="*", help="patterns, separated by commas")
    parser.add_argument("--seeds", type=int, default=0, help="seeds a case; 1, or 3 with --long")
    parser.add_argument("--long", action="store_true", help="every case, three seeds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--mutate", action="store_true")
    parser.add_argument("--option", action="append", default=[], help="a further option for mp-trace")
    parser.add_argument("--out", default="", help="write this torch's part of the page")
    parser.add_argument("--keep", default="", help="leave all files of the runs in this new folder")
    return parser.parse_args()


def find_python(options, root):
    python = options.python or (
        "/usr/bin/python3" if options.torch == "debian" else os.path.join(root, ".venv", "bin", "python"))
    probe = "import torch, sys; sys.stdout.write(torch.__version__)"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True, env=runs.environment()) \
        if os.path.exists(python) else None
    if done is None or done.returncode != 0:
        print(f"skipped: {python} has no torch ({options.torch})")
        sys.exit(77)
    return python, done.stdout


def chosen(options):
    patterns = options.cases.split(",")
    for case in CASES:
        if options.torch not in case.torches or not any(fnmatch.fnmatch(case.name, p) for p in patterns):
            continue
        if not options.long and options.cases == "*" and not in_ci(case, options.torch):
            continue
        if case.program == "sharded_gpt" and not options.sharded_gpt:
            print(f"skipped: {case.name}: no --sharded-gpt (libtorch-dev and libgloo-dev build it)")
            continue
        yield case


def say(result, rule=""):
    red, why = runs.verdict(result)
    counters = " ".join(f"{k} {v}" for k, v in result.counters.items() if v)
    print(f"{'RED' if red else 'ok '} {result.case.name} seed {result.seed}{' without ' + rule if rule else ''}: {why}"
          f"{' [' + counters + ']' if counters else ''}", flush=True)


def truth(options, setting, work):
    seeds = range(1, (options.seeds or (3 if options.long else 1)) + 1)
    jobs = [(case, seed) for case in chosen(options) for seed in seeds]
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(runs.run_case, setting, case, seed, work): (case, seed) for case, seed in jobs}
        for future in concurrent.futures.as_completed(waiting):
            results.append(future.result())
            say(results[-1])
    order = {case.name: i for i, case in enumerate(CASES)}
    results.sort(key=lambda r: (order[r.case.name], r.seed))
    if not results:
        print("no case was run")
        sys.exit(2)
    return results


def mutate(options, setting, work):
    """Rule -> (case, red, why); a rule whose loss nobody notices is a hole in the suite."""
    by_name = {case.name: case for case in CASES}
    jobs = [(rule, by_name[name]) for rule, (name, torch) in MUTATIONS.items()
            if torch == options.torch and any(fnmatch.fnmatch(rule, p) for p in options.cases.split(","))]
    found = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(runs.run_case, setting, case, 1, os.path.join(work, rule), rule): (rule, case)
                   for rule, case in jobs}
        for future in concurrent.futures.as_completed(waiting):
            rule, case = waiting[future]
            red, why = runs.verdict(future.result())
            found[rule] = (case.name, red, why)
            print(f"{'ok ' if red else 'RED'} without {rule}: {case.name} is {'red' if red else 'still green'}: {why}",
                  flush=True)
    return {rule: found[rule] for rule in MUTATIONS if rule in found}


def main():
    options = parse()
    root = os.path.dirname(os.path.dirname(HERE))
    python, version = find_python(options, root)
    # Where programs find mp_optim.
    os.environ["MP_OPTIM"] = os.path.join(os.path.dirname(os.path.abspath(options.mp_trace)), "../lib/mp-trace/optim")
    setting = runs.Setting(root, os.path.abspath(options.mp_trace), options.torch, python,
                           os.path.abspath(options.sharded_gpt) if options.sharded_gpt else "", options.option,
                           options.long)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mp-truth-") as temporary:
        work = os.path.abspath(options.keep) if options.keep else temporary
        if options.mutate:
            found = mutate(options, setting, work)
            red = [rule for rule, (_, noticed, _) in found.items() if not noticed]
            part = table.mutations(found, UNREACHABLE)
        else:
            results = truth(options, setting, work)
            red = [r.case.name for r in results if runs.verdict(r)[0]]
            part = table.cases(results)
    seconds = time.monotonic() - began
    if options.out:
        title = f"Rules switched off, torch {options.torch}" if options.mutate else f"torch {options.torch} ({version})"
        told = "".join(f" --{o}" for o in ("mutate", "long") if getattr(options, o))
        told += f" --seeds {options.seeds}" if options.seeds else ""
        told += f" --cases '{options.cases}'" if options.cases != "*" else ""
        table.write(options.out, title, part, seconds, f"truth.py --mp-trace BIN --torch {options.torch}{told}")
    print(f"{'RED: ' + ', '.join(red) if red else 'all as expected'}; {seconds:.0f} s")
    sys.exit(1 if red else 0)


main()
