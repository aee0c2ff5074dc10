"""What the runners of others' programs share: options, lists, and results that grow line by line."""
import argparse
import fnmatch
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests", "truth"))


def parser(about):
    """The options that all of them have."""
    made = argparse.ArgumentParser(description=about.splitlines()[0])
    made.add_argument("--mp-trace", default="")
    made.add_argument("--python", type=os.path.abspath,
                      default=os.path.join(ROOT, "build", "zoo-venv", "bin", "python"))
    made.add_argument("--checkouts", default="", help="has a checkout of each repository, in a folder of its name")
    made.add_argument("--results", required=True, help="one JSON line for each program")
    made.add_argument("--limit", type=int, default=1_000_000, help="programs to run now")
    made.add_argument("--only", default="*", help="pattern of a program's key")
    return made


def checkout(options, program):
    return os.path.join(os.path.abspath(options.checkouts), program["repository"].split("/")[1])


def rows(path):
    """The columns of each line of a list, separated by tabs."""
    with open(path, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def record(options, programs, measure, in_short):
    """Measures the programs that the results file does not have."""
    done = {line["key"] for line in read(options.results)}
    left = [p for p in programs if p["key"] not in done and fnmatch.fnmatchcase(p["key"], options.only)]
    for program in left[:options.limit]:
        line = measure(program)
        with open(options.results, "a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")
        print(line["key"], line.get("why") or in_short(line), flush=True)
