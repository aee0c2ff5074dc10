"""Runs the programs of public/list.txt untraced and under mp-trace; one JSON line for each in a results file.

    public.py --mp-trace BIN --checkouts DIR --results FILE [--limit N] [--only PATTERN]
    public.py --results FILE --out docs/evaluation.md

DIR has a checkout of each repository at its commit, in a folder of the repository's name. Nothing of them is kept here.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
import sets  # noqa: E402
import runs  # noqa: E402
import score  # noqa: E402

# How a subject ends: at its first loss that is not finite, as GRIST lets it, or three iterations later, as many would.
VARIANTS = (("fp32", 0), ("fp32", 3), ("fp16", 0), ("bf16", 0), ("fp16", 3), ("bf16", 3))
ITERATIONS = {True: 1000, False: 100}  # GRIST's search, and the programs as they are
PRELOADED = ("torch._dynamo", "torchvision")
runs.TIMEOUT = 150


def programs():
    named = sets.rows(os.path.join(HERE, "list.txt"))
    for dtype, more in VARIANTS:
        random.Random(20261123).shuffle(named)
        for group, repository, commit, path, arguments in named:
            if "_grist" in path or not more:
                yield {"key": f"{path}/{dtype}{'+' * more}", "group": group, "repository": repository, "commit": commit,
                       "path": path, "dtype": dtype, "more": more, "arguments": arguments.split()}


def command(options, program, words=()):
    return [options.python, os.path.join(HERE, "subject.py"), sets.checkout(options, program), program["path"],
            "--dtype", program["dtype"], "--iterations", str(ITERATIONS["_grist" in program["path"]]), "--go-on",
            str(program["more"]), *words, "--", *program["arguments"]]


def measure_in(options, program, work):
    line = {**program, "ran": False}
    plain = runs.run_forked(command(options, program), os.path.join(work, "plain"), PRELOADED)
    if plain[0] != 0:
        return line | {"why": f"{plain[0]}: {runs.tail(plain[2])}"}
    folder = os.path.join(work, "truth")
    runs.run_forked(command(options, program, ["--truth", os.path.join(folder, "first.json")]), folder, PRELOADED)
    first = None
    if os.path.exists(os.path.join(folder, "first.json")):
        with open(os.path.join(folder, "first.json"), encoding="utf-8") as f:
            first = json.load(f)
    folder = os.path.join(work, "traced")
    done = runs.run([options.mp_trace, "--mode", "trajectory", "-o", os.path.join(folder, "trace"), "--no-build", "--",
                     *command(options, program)], folder, runs.environment())
    told = subprocess.run([options.mp_trace, "report", "trace", "--json", "-"], cwd=folder, capture_output=True)
    gate = subprocess.run([options.mp_trace, "gate", "trace"], cwd=folder, capture_output=True)
    ended = [out.decode(errors="replace").strip().rsplit("\n", 1)[-1][:100] for out in (plain[1], done[1])]
    line |= {"ran": True, "truth": first, "gate": gate.returncode, "ended": ended[0],
             "transparent": plain[0] == done[0] and ended[0] == ended[1]}  # the other lines have times in them
    if told.returncode:
        return line | {"verdict": "no report", "findings": []}
    report = json.loads(told.stdout)
    return line | score.of_report(report, {"ran": [], "all": []}) | {"named": named(first, report["findings"])}


def named(first, findings):
    """Where the true place (op, and a line of the program if the op has one) is in the list of findings; 0: nowhere."""
    if first is None:
        return None
    lines = set(first["lines"])
    for place, finding in enumerate((f for f in findings if f["severity"] != "note"), 1):
        source = os.path.basename(finding.get("source") or "")
        if finding["op"] == first["op"] and (not lines or source in lines):
            return place
    return 0


def in_short(line):
    return f"truth {line['truth']} named {line.get('named')} {line['verdict']} " + "; ".join(
        f"{x['rule']} {x.get('op')} {x.get('source')}" for x in line["findings"][:3])


def main():
    parser = sets.parser(__doc__)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if options.out:
        import tables
        tables.write_public(options.out, sets.read(options.results))
        return 0
    options.mp_trace = os.path.abspath(options.mp_trace)

    def measure(program):
        with tempfile.TemporaryDirectory(prefix="mp-public-") as work:
            return measure_in(options, program, work)

    sets.record(options, programs(), measure, in_short)
    return 0


if __name__ == "__main__":
    sys.exit(main())
