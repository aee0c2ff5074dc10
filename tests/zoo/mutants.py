"""Lowers one op's precision in programs of the zoo and asks whether mp-trace names the place; a JSON line for each.

    mutants.py --draw zoo.jsonl --seed N [--count N]             writes mutants.txt, before the first run
    mutants.py --mp-trace BIN --results FILE [--limit N] [--jobs N]
    mutants.py --results FILE --out docs/evaluation.md

Mutant k of mutants.txt is drawn by a seed: its kind is k modulo the number of kinds (programs/mutant.py), its program
one of the zoo's that ran without a false error, its layer one of those that fit. What counts as its place stands in
PLACES. The program with the same code in fp32 is its good twin. All run under bf16 autocast with AdamW. The effect is
measured for all, without mp-trace; those below one floor are traced only if their number is a multiple of four.
"""
import argparse
import concurrent.futures
import dataclasses
import fnmatch
import math
import os
import random
import sys
import tempfile
from dataclasses import dataclass

import score
import zoo
from zoo import compare, runs

KINDS = ("accumulate", "reduce", "cast", "constant", "state", "counter")
PLACES = {"accumulate": ("forward",), "reduce": ("backward", "optimizer"), "cast": ("forward", "backward"),
          "constant": ("forward", "data", "unknown"), "state": ("optimizer",), "counter": ("optimizer",)}
GROUPS = ("transformers", "timm", "torchvision")
COUNT = 200
TRACED_FROM, OTHERS = 1, 4  # every mutant from this effect on is traced, and every fourth of the others
LIST = os.path.join(zoo.HERE, "mutants.txt")


@dataclass(frozen=True)
class Mutant:
    number: int
    kind: str
    program: str
    name: str
    layer: str = ""

    @property
    def key(self):
        return f"{self.number} {self.kind} {self.name}"


def command(python, mutant, form, precision="low"):
    script = os.path.join(zoo.HERE, "programs", "mutant.py")
    return [python, script, mutant.kind, mutant.layer, form, mutant.program, mutant.name, "--precision",
            precision, "--steps", str(zoo.STEPS), "--save", "result.%r"]


def forked(options, mutant, form, folder, **more):
    return runs.run_forked(command(options.python, mutant, form, **more), folder, zoo.PRELOADED)


def healthy(lines, marks):
    """Names of the programs of GROUPS that ran without a false error."""
    ran = [line for line in lines if line["ran"] and line["group"] in GROUPS]
    loud = {line["name"] for line in ran if score.counts(line, marks).get(("error", "false"))}
    return {line["name"] for line in ran} - loud


def layers_of(options, program, name):
    """Kind -> layers of the program that it fits."""
    with tempfile.TemporaryDirectory(prefix="mp-mutant-") as folder:
        listed = forked(options, Mutant(0, "", program, name), "list", folder)
    rows = [line.split(" ") for line in listed[1].decode().splitlines()] if listed[0] == 0 else []
    return {row[0]: row[1:] for row in rows if row[0] in KINDS}


def drawn(number, seed, named, layers):
    """Mutant `number` from `layers`, program -> kind -> layers; None: no program has such a layer."""
    draw = random.Random(f"{seed}.{number}")
    kind = KINDS[number % len(KINDS)]
    for _ in range(60):
        _, program, name = draw.choice(named)
        if found := layers[name].get(kind):
            return Mutant(number, kind, program, name, draw.choice(found))
    return None


def draw_all(options):
    """Writes mutants.txt."""
    with open(os.path.join(zoo.HERE, "list.txt"), encoding="utf-8") as f:
        listed = [line.rstrip("\n").split("\t") for line in f if line.startswith(GROUPS)]
    fit = healthy(zoo.read(options.draw), score.load_marks())
    named = [entry for entry in listed if entry[2] in fit]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        layers = dict(zip((name for _, _, name in named),
                          pool.map(lambda entry: layers_of(options, *entry[1:]), named)))
    found = [m for m in (drawn(k, options.seed, named, layers) for k in range(options.count)) if m]
    with open(LIST, "w", encoding="utf-8") as f:
        f.write(f"# Drawn by mutants.py --seed {options.seed} --count {options.count} from {len(named)} programs\n")
        f.writelines("\t".join(map(str, dataclasses.astuple(m))) + "\n" for m in found)


def frozen():
    with open(LIST, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return [Mutant(int(row[0]), *row[1:]) for row in rows]


def parameters(folder):
    import numpy
    tensors = compare.read_safetensors(os.path.join(folder, "result.0"))
    return numpy.concatenate([numpy.frombuffer(data, numpy.float32).astype(float)
                              for name, (_, _, data) in sorted(tensors.items()) if name != "losses" and
                              compare.kind_of(name) == "parameters"])


def effect(folders):
    """The error that the lowered op adds to the whole update: beyond that of the good twin, in units of it. The good
    twin's error is what the ordinary roundings of the program leave in the update, the floor of this update."""
    import numpy
    bad, good, fp32 = (parameters(folders[kind]) for kind in ("bad", "good", "fp32"))
    if not numpy.isfinite(bad).all():
        return 1e9
    floor = numpy.linalg.norm(good - fp32)
    return math.sqrt(max(0.0, numpy.square(bad - fp32).sum() - floor ** 2)) / max(floor, 1e-30)


def at_place(mutant, finding):
    """Whether the finding is at the lowered op: its layer, one inside or the one that holds it, and its phase."""
    layer, said = mutant.layer, finding.get("layer") or ""
    near = said == layer or said.startswith(layer + ".") or (said and layer.startswith(said + "."))
    return finding.get("phase") in PLACES[mutant.kind] and (near or said in ("(optimizer)", "(update)"))


def judged(mutant, bad, good):
    """What the report adds to the good twin's: found at all, and the place of the first right finding."""
    usual = {(f["rule"], f["layer"], f["op"]) for f in good["findings"]}
    new = [f for f in bad["findings"] if f["severity"] != "note" and (f["rule"], f["layer"], f["op"]) not in usual]
    right = [place for place, finding in enumerate(new, 1) if at_place(mutant, finding)]
    return {"found": bool(new), "place": right[0] if right else 0, "all": [score.short(f) for f in new[:5]],
            "said": [f"{f['rule']} {f.get('layer')} {f.get('op')} {f.get('phase')}" for f in new[:5]]}


def measure(options, mutant, work):
    folders = {kind: os.path.join(work, kind) for kind in ("bad", "good", "fp32")}
    line = dataclasses.asdict(mutant) | {"key": mutant.key, "ran": False}
    done = [forked(options, mutant, "bad", folders["bad"]), forked(options, mutant, "good", folders["good"]),
            forked(options, mutant, "good", folders["fp32"], precision="fp32")]
    failed = [d for d in done if d[0] != 0]
    if failed:
        return line | {"why": runs.tail(failed[0][2])}
    line |= {"effect": effect(folders), "ran": True, "traced": False}
    if line["effect"] < TRACED_FROM and mutant.number % OTHERS:
        return line
    bad, good = (zoo.traced(options, command(options.python, mutant, form), os.path.join(work, "traced", form))
                 for form in ("bad", "good"))
    if bad[1] is None or good[1] is None:
        return line | {"ran": False, "why": "no report: " + runs.tail(bad[0][2])}
    return line | judged(mutant, bad[1], good[1]) | {
        "traced": True, "transparent": bad[0][:2] == done[0][:2], "gate": bad[2], "good_gate": good[2],
        "headline": bad[1]["verdict"]["headline"], "good_ops": good[1]["coverage"]["ops"],
        "good_errors": [score.short(f) for f in good[1]["findings"] if f["severity"] == "error"]}


def in_short(line):
    if not line["ran"]:
        return f"{line['key']} {line['layer']}: does not run: {line['why'][:160]}"
    if not line["traced"]:
        return f"{line['key']} {line['layer']}: effect {line['effect']:.2f}"
    return (f"{line['key']} {line['layer']}: effect {line['effect']:.2f} place {line['place']} gate {line['gate']} "
            f"{line['said'][:2]} good {line['good_gate']}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", default="")
    parser.add_argument("--python", default=os.path.join(zoo.ROOT, "build", "zoo-venv", "bin", "python"))
    parser.add_argument("--results", default="")
    parser.add_argument("--draw", default="", help="results of zoo.py: which programs are healthy")
    parser.add_argument("--seed", type=int, default=zoo.SEED)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--limit", type=int, default=COUNT, help="mutants to run now")
    parser.add_argument("--only", default="*", help="pattern of NUMBER KIND NAME")
    parser.add_argument("--keep", default="", help="leave the files of the runs in this folder")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="")
    return parser.parse_args()


def main():
    options = parse()
    os.environ["HF_HUB_OFFLINE"] = "1"
    if options.out:
        import tables
        tables.write_mutants(options.out, zoo.read(options.results))
        return 0
    if options.draw:
        draw_all(options)
        return 0
    options.mp_trace, options.mode = os.path.abspath(options.mp_trace), "trajectory"
    ready = {line["number"] for line in zoo.read(options.results)}
    left = [m for m in frozen() if m.number not in ready and fnmatch.fnmatchcase(m.key, options.only)]
    zoo.record(options, left[:options.limit], lambda mutant, work: measure(options, mutant, work), in_short)
    return 0


if __name__ == "__main__":
    sys.exit(main())
