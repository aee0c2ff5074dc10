"""Runs the programs of list.txt in low precision, in fp32 and under mp-trace; one JSON line for each in a results file.

    zoo.py --mp-trace BIN --results FILE [--limit N] [--only PATTERN] [--mode trajectory|watch|step] [--jobs N]
           [--device cuda]
    zoo.py --results FILE --out docs/evaluation.md     writes the tables

The order is fixed by a seed, every round has each program once, and each regime equally often: any prefix is a fair
sample. Programs that the results file has are not run again. tests/zoo/venv installs the libraries; exit 77 without.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests", "truth"))
import compare  # noqa: E402
import runs  # noqa: E402
import score  # noqa: E402
from sets import read  # noqa: E402


REGIMES = ("bf16-autocast", "bf16-masters", "bf16-pure", "fp16-scaler")
# What the libraries' own loops and optimizers can do.
FEWER = {"lightning": ("bf16-autocast", "bf16-pure"), "accelerate": ("bf16-autocast",), "trainer": ("bf16-autocast",),
         "torchao.AdamW8bit": ("bf16-autocast", "bf16-pure"), "torchao.AdamWFp8": ("bf16-autocast", "bf16-pure"),
         "bitsandbytes.AdamW8bit": ("bf16-autocast", "bf16-pure")}
PRELOADED = ("torch._dynamo", "transformers", "timm", "torchvision", "diffusers", "peft")
STEPS = 5
SEED = 20261123


def differing_elements(a, b):
    """compare.differing_elements with numpy: the models here are a hundred times those of tests/truth."""
    import numpy
    x, y = numpy.frombuffer(a, numpy.uint32), numpy.frombuffer(b, numpy.uint32)
    other = x != y
    zeros = int(numpy.count_nonzero(other & (((x | y) & 0x7fffffff) == 0)))
    return int(numpy.count_nonzero(other)) - zeros, zeros


def largest_gap(a, b):
    """compare.largest_gap with numpy."""
    import numpy
    x, y = numpy.frombuffer(a, numpy.float32).astype(float), numpy.frombuffer(b, numpy.float32).astype(float)
    gap, scale = abs(x - y).max(initial=0.0), abs(y).max(initial=0.0)
    return float(gap / scale) if scale and numpy.isfinite(gap) else 0.0 if gap == 0.0 else math.inf


@dataclass(frozen=True)
class Program:
    group: str
    program: str
    name: str
    regime: str
    roots: str = "first"  # as in tests/truth/cases.py

    @property
    def key(self):
        return f"{self.name}/{self.regime}"


def in_order(lines):
    """Every (program, regime) in rounds: a shuffle of all programs, each with its next regime."""
    named = [line.rstrip("\n").split("\t") for line in lines if line.strip() and not line.startswith("#")]
    draw = random.Random(SEED)
    queues = {}
    for position, (_, _, name) in enumerate(named):
        regimes = list(FEWER.get(name, REGIMES))
        draw.shuffle(regimes)
        queues[name] = regimes
    for number in range(len(REGIMES)):
        draw.shuffle(named)
        for group, program, name in named:
            if number < len(queues[name]):
                yield Program(group, program, name, queues[name][number])


def command_of(options, program, precision, skips=()):
    words = [options.python, os.path.join(HERE, "programs", program.program), program.name, "--regime", program.regime,
             "--device", options.device, "--precision", precision, "--steps", str(STEPS), "--save", "result.%r"]
    return words + (["--skip-steps", ",".join(map(str, skips))] if skips else [])


def traced(options, command, folder):
    """Runs the command under mp-trace: (exit status, stdout, stderr), report, gate's exit status."""
    prefix = [options.mp_trace, "--mode", options.mode, "-o", "trace", "--no-build"]
    if options.mode == "trajectory":
        prefix += ["--save-twin", "twin.%r"]
    done = runs.run(prefix + ["--", *command], folder, runs.environment())
    told = subprocess.run([options.mp_trace, "report", "trace", "--json", "-"], cwd=folder, capture_output=True,
                          env=runs.environment(), timeout=runs.TIMEOUT)
    gate = subprocess.run([options.mp_trace, "gate", "trace"], cwd=folder, capture_output=True,
                          env=runs.environment(), timeout=runs.TIMEOUT)
    return done, json.loads(told.stdout) if told.returncode == 0 else None, gate.returncode


def measure(options, program, work):
    """The JSON line of one program."""
    began = time.monotonic()
    line = {"key": program.key, "group": program.group, "name": program.name, "regime": program.regime,
            "mode": options.mode, "ran": False}
    folders = {kind: os.path.join(work, kind) for kind in ("plain", "traced", "fp32")}
    plain = runs.run_forked(command_of(options, program, "low"), folders["plain"], PRELOADED)
    if plain[0] != 0:
        return line | {"why": f"low precision: {runs.tail(plain[2])}"}
    skips = sorted({int(s) for s in runs.SKIPPED.findall(plain[1].decode())})
    fp32 = runs.run_forked(command_of(options, program, "fp32", skips), folders["fp32"], PRELOADED)
    if fp32[0] != 0:
        return line | {"why": f"fp32: {runs.tail(fp32[2])}"}
    done, report, gate = traced(options, command_of(options, program, "low"), folders["traced"])
    result = runs.Result(program, 1)
    runs.check_transparent(result, folders["plain"], folders["traced"], plain, done)
    line |= {"ran": True, "skipped": len(skips), "gate": gate, "said": done[2].decode(errors="replace")[-600:]}
    if report is None:
        return line | {"transparent": False, "faults": result.faults + ["no report"]}
    if options.mode == "trajectory":
        runs.check_twin(result, program, folders["traced"], folders["fp32"], report)
        line |= {"exact": result.exact, "wrong": result.wrong()[:3], "losses": str(result.losses),
                 "twin": {kind: str(match) for kind, match in result.matches.items()}}
    with open(os.path.join(folders["fp32"], "layers.json"), encoding="utf-8") as f:
        modules = json.load(f)
    line |= score.of_report(report, modules)
    return line | {"transparent": result.transparent, "faults": result.faults, "because": score.explained(line),
                   "steps_right": len(report["steps"]) == STEPS, "seconds": round(time.monotonic() - began, 1)}


def key_of(item):
    """The key of a program, a mutant or its results; of the first if there are several."""
    if isinstance(item, list):
        return key_of(item[0])
    return item["key"] if isinstance(item, dict) else item.key


def record(options, items, measured, in_short):
    """Appends the lines of each item to the results file as soon as they exist. `measured` returns one or a list."""
    runs.TIMEOUT = 3000  # seconds: these batches run at a low priority beside other work

    def one(item):
        work = os.path.join(options.keep, key_of(item)) if options.keep else tempfile.mkdtemp(prefix="mp-zoo-")
        shutil.rmtree(work, ignore_errors=True)
        try:
            return measured(item, os.path.abspath(work))
        finally:
            if not options.keep:
                shutil.rmtree(work, ignore_errors=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(one, item) for item in items]
        try:
            for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
                lines = done.result()
                for line in lines if isinstance(lines, list) else [lines]:
                    with open(options.results, "a", encoding="utf-8") as f:
                        f.write(json.dumps(line) + "\n")
                    print(f"{number}/{len(items)} {in_short(line)}", flush=True)
        finally:  # a fault of the runner ends the batch at once, not after hours of programs whose results nobody keeps
            pool.shutdown(cancel_futures=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", default="")
    parser.add_argument("--python", default=os.path.join(ROOT, "build", "zoo-venv", "bin", "python"))
    parser.add_argument("--results", required=True)
    parser.add_argument("--mode", default="trajectory")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--limit", type=int, default=1_000_000, help="programs to run now")
    parser.add_argument("--only", default="*", help="pattern of NAME/REGIME")
    parser.add_argument("--keep", default="", help="leave the files of the runs in this folder")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time, each with one thread")
    parser.add_argument("--out", default="", help="write the tables of the results file to this page")
    parser.add_argument("--part", default="zoo", help="the marked part of that page")
    return parser.parse_args()


def main():
    options = parse()
    if options.out:
        import tables
        tables.write_zoo(options.out, read(options.results), options.part)
        return 0
    if not os.path.exists(options.python):
        print(f"skipped: no {options.python}; tests/zoo/venv makes it")
        return 77
    compare.differing_elements, compare.largest_gap = differing_elements, largest_gap
    options.mp_trace = os.path.abspath(options.mp_trace)
    os.environ["HF_HUB_OFFLINE"] = "1"
    if options.device == "cuda":
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # cuBLAS is deterministic only with such
    with open(os.path.join(HERE, "list.txt"), encoding="utf-8") as f:
        programs = list(in_order(f))
    done = {(line["key"], line["mode"]) for line in read(options.results)}
    left = [p for p in programs if (p.key, options.mode) not in done and fnmatch.fnmatchcase(p.key, options.only)]
    record(options, left[:options.limit], lambda program, work: measure(options, program, work), score.in_short)
    return 0


if __name__ == "__main__":
    sys.exit(main())
