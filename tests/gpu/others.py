"""Training programs of others in CUDA (others.txt), each twice untraced and once traced: is the output the same?

    others.py --mp-trace BIN --programs DIR --libraries DIR:DIR --out DIR [NAME...]

DIR/FOLDER has a program, its data, and its command line in a file cmd (FOLDER) or cmd.KIND (FOLDER.KIND). Numbers of
the output may differ from the first run's ten times as much as two untraced runs differ in numbers of that place in a
line, as losses of programs that add by atomics do; times and rates are not compared. Writes the output of all runs,
recordings and reports into --out, and prints one line for each program.
"""
import argparse
import glob
import json
import math
import os
import re
import subprocess
import sys
import time

NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|(?<![a-z])(?:nan|inf)(?![a-z])))")
OF_THE_MACHINE = re.compile(r" ?(ms|s|us|µs|secs?|seconds?|tok/s|%|MiB)\b")


def commands(programs):
    """{name: (folder, command line)}"""
    found = {}
    for path in sorted(glob.glob(os.path.join(programs, "*", "cmd*"))):
        folder = os.path.dirname(path)
        with open(path, encoding="utf-8") as f:
            found[os.path.basename(folder) + os.path.basename(path)[len("cmd"):]] = folder, f.read().strip()
    return found


def words(text):
    return [NUMBER.split(" ".join(line.split())) for line in text.splitlines()]


def numbers(text):
    """(place, number): the place is the text between the numbers of a line, and which of them it is. Times, rates and
    the memory in use are left out."""
    for parts in words(text):
        for i, value in enumerate(parts[1::2]):
            if not OF_THE_MACHINE.match(parts[2 * i + 2]):
                yield (tuple(parts[::2]), i), float(value)


def gap(x, y):
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0.0
    return abs(x - y) / max(abs(x), abs(y)) if math.isfinite(x) and math.isfinite(y) else math.inf


def differing(text, first, second):
    """What is in the text neither as in the first run nor within ten times what the second is apart from that."""
    if [parts[::2] for parts in words(text)] != [parts[::2] for parts in words(first)]:
        return ["other words"]
    noise = {}
    for (place, x), (_, y) in zip(numbers(first), numbers(second)):
        noise[place] = max(noise.get(place, 0.0), gap(x, y))
    return [f"{y:g} for {x:g}" for (place, x), (_, y) in zip(numbers(first), numbers(text))
            if gap(x, y) > 10 * noise.get(place, 0.0)]


def run(command, folder, env, out):
    begin = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=90,
                              errors="replace")
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, 124, "", "ran longer than 90 s")
    for end, text in (("out", done.stdout), ("err", done.stderr)):
        with open(f"{out}.{end}", "w", encoding="utf-8") as f:
            f.write(text)
    return done, time.monotonic() - begin


def measure(options, name, folder, line, env):
    out = os.path.join(options.out, name)
    shell = ["bash", "-c", line]
    first, seconds = run(shell, folder, env, out + ".plain-1")
    if first.returncode:
        return f"does not run untraced: {first.returncode} {first.stderr.strip()[-200:]}"
    second, _ = run(shell, folder, env, out + ".plain-2")
    traced, longer = run([options.mp_trace, "-o", out + ".trace", "--", *shell], folder, env, out + ".traced")
    told, _ = run([options.mp_trace, "report", out + ".trace", "--json", "-"], folder, env, out + ".json")
    for verb in ("report", "gate", "doctor"):
        run([options.mp_trace, verb, out + ".trace"], folder, env, f"{out}.{verb}")
    wrong = differing(traced.stdout, first.stdout, second.stdout)
    if traced.returncode:
        wrong.insert(0, f"ended with {traced.returncode}")
    report = json.loads(told.stdout) if told.returncode == 0 else None
    found = ["no report"] if report is None else [
        f"{len(report['steps'])} steps, {len(report['layers'])} layers, {report['coverage']['ops']} calls",
        *(f"{f['severity']} {f['rule']} {f.get('layer') or ''}" for f in report["findings"])]
    same = "OTHER OUTPUT " + "; ".join(wrong[:4]) if wrong else "same output"
    return f"{same}, {seconds:.1f} s, traced {longer:.1f} s; " + "; ".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--mp-trace", "--programs", "--libraries", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("names", nargs="*", help="all without")
    options = parser.parse_args()
    options.mp_trace, options.out = os.path.abspath(options.mp_trace), os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
    env["LD_LIBRARY_PATH"] = options.libraries
    for name, (folder, line) in commands(options.programs).items():
        if not options.names or name in options.names:
            print(f"{name}: {measure(options, name, os.path.abspath(folder), line, env)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
