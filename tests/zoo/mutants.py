"""Lowers one op's precision in programs of the zoo and asks whether mp-trace names the place; a JSON line for each.

    mutants.py --mp-trace BIN --results FILE [--limit N]
    mutants.py --results FILE --out docs/evaluation.md

Mutant k is drawn by a seed alone: its kind is k modulo the number of kinds (programs/mutant.py), its program is the
next of the zoo's that has a layer of that kind, its layer one of those. What counts as its place stands in PLACES. The
program with the same code in fp32 is its good twin. All run under bf16 autocast with AdamW.
"""
import argparse
import json
import math
import os
import random
import shutil
import sys
import tempfile

import score
import zoo
from zoo import compare, runs

KINDS = ("accumulate", "reduce", "cast", "constant", "state", "counter")
PLACES = {"accumulate": ("forward",), "reduce": ("backward", "optimizer"), "cast": ("forward", "backward"),
          "constant": ("forward", "data", "unknown"), "state": ("optimizer",), "counter": ("optimizer",)}
GROUPS = ("transformers", "timm", "torchvision")
FLOOR = 0.425 * 2 ** -8  # one rounding to bf16
COUNT = 200


def command(python, mutant, form, precision="low", steps=zoo.STEPS):
    script = os.path.join(zoo.HERE, "programs", "mutant.py")
    return [python, script, mutant["kind"], mutant["layer"], form, mutant["program"], mutant["name"], "--precision",
            precision, "--steps", str(steps), "--save", "result.%r"]


def forked(options, mutant, form, folder, **more):
    return runs.run_forked(command(options.python, mutant, form, **more), folder, zoo.PRELOADED)


def drawn(options, number, named, work):
    """Mutant `number`: kind, program, name, layer."""
    draw = random.Random(f"{zoo.SEED}.{number}")
    mutant = {"kind": KINDS[number % len(KINDS)], "layer": ""}
    for _ in range(60):
        _, mutant["program"], mutant["name"] = draw.choice(named)
        listed = forked(options, mutant, "list", os.path.join(work, "list"))
        layers = listed[1].decode().split() if listed[0] == 0 else []
        if layers:
            return mutant | {"layer": draw.choice(layers), "key": f"{number} {mutant['kind']} {mutant['name']}"}
    return None


def parameters(folder):
    import numpy
    tensors = compare.read_safetensors(os.path.join(folder, "result.0"))
    return numpy.concatenate([numpy.frombuffer(data, numpy.float32).astype(float)
                              for name, (_, _, data) in sorted(tensors.items()) if name != "losses" and
                              compare.kind_of(name) == "parameters"])


def effect(folders):
    """The error that the lowered op adds to the whole update, in floors of bf16: beyond that of the good twin."""
    import numpy
    start, bad, good, fp32 = (parameters(folders[kind]) for kind in ("start", "bad", "good", "fp32"))
    if not numpy.isfinite(bad).all():
        return 1e9
    square = numpy.square(bad - fp32).sum() - numpy.square(good - fp32).sum()
    return math.sqrt(max(0.0, square)) / max(numpy.linalg.norm(fp32 - start), 1e-30) / FLOOR


def at_place(mutant, finding):
    """Whether the finding is at the lowered op: its layer, one inside or the one that holds it, and its phase."""
    layer, said = mutant["layer"], finding.get("layer") or ""
    near = said == layer or said.startswith(layer + ".") or (said and layer.startswith(said + "."))
    return finding.get("phase") in PLACES[mutant["kind"]] and (near or said in ("(optimizer)", "(update)"))


def judged(mutant, bad, good):
    """What the report adds to the good twin's: found at all, and the place of the first right finding."""
    usual = {(f["rule"], f["layer"], f["op"]) for f in good["findings"]}
    new = [f for f in bad["findings"] if f["severity"] != "note" and (f["rule"], f["layer"], f["op"]) not in usual]
    right = [place for place, finding in enumerate(new, 1) if at_place(mutant, finding)]
    return {"found": bool(new), "place": right[0] if right else 0, "all": [score.short(f) for f in new[:5]],
            "said": [f"{f['rule']} {f.get('layer')} {f.get('op')} {f.get('phase')}" for f in new[:5]]}


def measure(options, mutant, work):
    folders = {kind: os.path.join(work, kind) for kind in ("start", "bad", "good", "fp32")}
    done = [forked(options, mutant, "bad", folders["bad"]), forked(options, mutant, "good", folders["good"]),
            forked(options, mutant, "good", folders["fp32"], precision="fp32"),
            forked(options, mutant, "good", folders["start"], steps=0)]
    failed = [d for d in done if d[0] != 0]
    if failed:
        return mutant | {"ran": False, "why": runs.tail(failed[0][2])}
    line = mutant | {"ran": True, "effect": effect(folders)}
    bad, good = (zoo.traced(options, command(options.python, mutant, form), os.path.join(work, "traced", form))
                 for form in ("bad", "good"))
    if bad[1] is None or good[1] is None:
        return mutant | {"ran": False, "why": "no report: " + runs.tail(bad[0][2])}
    return line | judged(mutant, bad[1], good[1]) | {
        "transparent": bad[0][:2] == done[0][:2], "gate": bad[2], "good_gate": good[2],
        "good_ops": good[1]["coverage"]["ops"],
        "good_errors": sum(f["severity"] == "error" for f in good[1]["findings"])}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", default="")
    parser.add_argument("--python", default=os.path.join(zoo.ROOT, "build", "zoo-venv", "bin", "python"))
    parser.add_argument("--results", required=True)
    parser.add_argument("--limit", type=int, default=COUNT)
    parser.add_argument("--out", default="")
    return parser.parse_args()


def main():
    options = parse()
    if options.out:
        import tables
        tables.write_mutants(options.out, zoo.read(options.results))
        return 0
    options.mp_trace, options.mode = os.path.abspath(options.mp_trace), "trajectory"
    os.environ["HF_HUB_OFFLINE"] = "1"
    with open(os.path.join(zoo.HERE, "list.txt"), encoding="utf-8") as f:
        named = [line.rstrip("\n").split("\t") for line in f if line.startswith(GROUPS)]
    ready = {line["number"] for line in zoo.read(options.results)}
    for number in [n for n in range(COUNT) if n not in ready][:options.limit]:
        work = tempfile.mkdtemp(prefix="mp-mutant-")
        try:
            mutant = drawn(options, number, named, work)
            line = measure(options, mutant, work) if mutant else {"key": str(number), "ran": False, "why": "no layer"}
        finally:
            shutil.rmtree(work, ignore_errors=True)
        with open(options.results, "a", encoding="utf-8") as f:
            f.write(json.dumps(line | {"number": number}) + "\n")
        print(line["key"], line.get("layer"), line.get("why") or f"effect {line['effect']:.2f} place {line['place']} "
              f"gate {line['gate']} {line['said'][:2]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
