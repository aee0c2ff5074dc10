"""Does tracing harm any op or module of PyTorch? The samples of torch's own tests (OpInfo, ModuleInfo), in bf16 and
fp16 on the CPU, run untraced and in every mode of mp-trace; bits, errors and ends must be the same.

    sweep.py --mp-trace BIN [--op 'max_pool*'] [--kinds ops,modules] [--dtypes bf16,fp16] [--modes local,step]
             [--most N] [--twin] [--work DIR]

`--op`: only these. `--most`: so many samples of each op. `--twin`: the twin's values against an fp32 run as well.
`--work`: keeps the files of the runs; what is complete there is not run again. Exit status 0: no difference, 1: some,
77: this torch cannot list its tests.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

import runs

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STALLED = 900  # seconds without a sample; the first one waits for the import of torch and its tests
MODES = ("watch", "local", "step", "trajectory")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", required=True)
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "bin", "python"))
    parser.add_argument("--op", default="*")
    parser.add_argument("--kinds", default="ops,modules")
    parser.add_argument("--dtypes", default="bf16,fp16")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--twin", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", default="")
    return parser.parse_args()


def lines_of(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def take_up(path):
    """Drops the sample in which an earlier sweep was interrupted."""
    if not os.path.exists(path):
        return
    with open(path) as f:
        lines = [line for line in f if line.endswith("}\n")]
    if lines and "begin" in json.loads(lines[-1]):
        lines.pop()
    with open(path, "w") as f:
        f.writelines(lines)


def end_of(process, path):
    """The exit status, or "stalled" if no sample ended for too long."""
    size, since = -1, time.monotonic()
    while True:
        try:
            return process.wait(2)
        except subprocess.TimeoutExpired:
            now = os.path.getsize(path) if os.path.exists(path) else 0
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > STALLED:
                process.kill()
                process.wait()
                return "stalled"


def run_one(options, kind, dtype, way, work):
    """One run over all samples; after a crash it goes on behind the sample that crashed."""
    path = os.path.join(work, f"{kind}.{dtype}.{way}")
    command = [options.python, os.path.join(HERE, "sweep_worker.py"), kind,
               f"fp32-of-{dtype}" if way == "fp32" else dtype, path, "--op", options.op, "--most", str(options.most)]
    if way == "trajectory" and options.twin:
        command.append("--twin")
    if way in MODES:
        command = [os.path.abspath(options.mp_trace), "-q", "--no-build", "--mode", way, "-o", path + ".run.%t",
                   "--budget", "64M", "--", *command]
    take_up(path)
    began = time.monotonic()
    while not any("end" in line for line in lines_of(path)):
        with open(path + ".stderr", "ab") as err:
            # Some of torch's lists of samples are sets of strings.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=err, stderr=err, cwd=work,
                                       env={**runs.environment(), "PYTHONHASHSEED": "0"})
            status = end_of(process, path)
        lines = lines_of(path)
        ended = {line.get("key") for line in lines}
        crashed = [line["begin"] for line in lines if "begin" in line and line["begin"] not in ended]
        with open(path, "a") as f:
            for key in crashed:
                f.write(json.dumps({"key": key, "crash": str(status)}) + "\n")
            if not crashed and not any("end" in line for line in lines):
                f.write(json.dumps({"key": "(the process)", "crash": str(status)}) + "\n" + '{"end": true}\n')
            if any("end" in line for line in lines) and status != 0:
                f.write(json.dumps({"key": "(the process's end)", "crash": str(status)}) + "\n")
        for key in crashed:
            print(f"crash: {kind} {dtype} {way}: {key}: {status}", flush=True)
    found = {line["key"]: {k: v for k, v in line.items() if k != "key"} for line in lines_of(path) if "key" in line}
    print(f"{kind} {dtype} {way}: {len(found)} samples, {time.monotonic() - began:.0f} s", flush=True)
    return found


def program(result):
    return {k: v for k, v in result.items() if not k.startswith("twin_")}


def names_of(keys):
    return sorted({key.split(":")[0].split(" ")[0] for key in keys})


def judge(options, kind, dtype, found):
    """Differences of the program. What differs between two untraced runs proves nothing."""
    plain, again = found["untraced"], found["untraced-again"]
    unsteady = {key for key in plain if again.get(key) != plain[key]}
    red = []
    for mode in options.modes.split(","):
        for key, result in plain.items():
            if key not in unsteady and program(found[mode].get(key, {})) != result:
                red.append((mode, key, result, found[mode].get(key)))
        red += [(mode, key, "ended", result) for key, result in found[mode].items()
                if "crash" in result and key not in plain]
    works = [key for key, result in plain.items() if "out" in result]
    print(f"{kind} {dtype}: {len(names_of(works))} names, {len(plain)} samples, {len(plain) - len(works)} of them "
          f"raise; {len(red)} differences; not the same twice untraced: {', '.join(names_of(unsteady)) or 'none'}")
    for mode, key, expected, got in red[:40]:
        print(f"RED {kind} {dtype} {mode} {key}: {got} instead of {expected}")
    if options.twin:
        judge_twin(kind, dtype, found, unsteady)
    return red


def judge_twin(kind, dtype, found, unsteady):
    """The twin's values against those of the fp32 run. A list, no verdict."""
    compared, inexact = 0, collections.Counter()
    for key, wide in found["fp32"].items():
        twin = found["trajectory"].get(key, {})
        if key in unsteady or "out" not in wide or "twin_out" not in twin:
            continue
        compared += 1
        for part in ("out", "grad"):
            if wide[part] != twin["twin_" + part]:
                inexact[key.split(":")[0].strip() + f" [{part}]"] += 1
    print(f"{kind} {dtype}: twin compared in {compared} samples, {sum(inexact.values())} differ: "
          f"{', '.join(f'{name} {n}' for name, n in sorted(inexact.items())) or 'none'}")


def main():
    options = parse()
    probe = subprocess.run([options.python, "-c", "import torch.testing._internal.common_modules"], capture_output=True,
                           text=True)
    if probe.returncode != 0:
        print(f"skipped: {probe.stderr.strip().splitlines()[-1] if probe.stderr else options.python}")
        sys.exit(77)
    began = time.monotonic()
    ways = ["untraced", "untraced-again", *options.modes.split(","), *(["fp32"] if options.twin else [])]
    red = []
    with tempfile.TemporaryDirectory(prefix="mp-sweep-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = os.path.abspath(options.work) if options.work else scratch
        os.makedirs(work, exist_ok=True)
        jobs = {(kind, dtype, way): pool.submit(run_one, options, kind, dtype, way, work)
                for kind in options.kinds.split(",") for dtype in options.dtypes.split(",") for way in ways}
        for kind in options.kinds.split(","):
            for dtype in options.dtypes.split(","):
                red += judge(options, kind, dtype, {way: jobs[kind, dtype, way].result() for way in ways})
    print(f"{f'RED: {len(red)} differences' if red else 'no difference'}; {time.monotonic() - began:.0f} s")
    sys.exit(1 if red else 0)


main()
