"""Lowers one op's precision in programs of the zoo and asks whether mp-trace names the place; a JSON line for each.

    mutants.py --draw zoo.jsonl --seed N [--count N]             writes mutants.txt, before the first run
    mutants.py --draw mutants.txt --seed N [--kinds K,K] [--programs N] --list FILE     another one, of its programs
    mutants.py --draw list.txt --seed N --kinds K,K --list FILE      another one, of programs that no list has
    mutants.py --effects FILE [--jobs N]                         without mp-trace
    mutants.py --effects FILE --mp-trace BIN --results FILE [--limit N] [--jobs N]
    mutants.py --effects FILE --results FILE --out docs/evaluation.md [--list FILE --part NAME]

Mutant k of mutants.txt is drawn by a seed: its kind is k modulo the number of kinds (programs/mutant.py), its program
one of the zoo's that ran without a false error, its layer one of those that fit. What counts as its place stands in
PLACES. The program with the same code in fp32 is its good twin. All run under bf16 autocast with AdamW. The effect is
measured for all; those below one floor are traced only if their number is a multiple of four, and last.
"""
import argparse
import concurrent.futures
import dataclasses
import fnmatch
import glob
import math
import os
import random
import shutil
import sys
import tempfile
from dataclasses import dataclass

import score
import zoo
from zoo import compare, runs

KINDS = ("accumulate", "reduce", "cast", "constant", "state", "counter")
PLACES = {"accumulate": ("forward",), "reduce": ("backward", "optimizer"), "cast": ("forward", "backward"),
          "constant": ("forward", "data", "unknown"), "state": ("optimizer",), "counter": ("optimizer",),
          "weight": ("optimizer",), "gradient": ("backward", "optimizer")}
PLACES |= {"columns": PLACES["accumulate"], "steps": PLACES["counter"], "table": PLACES["constant"]}
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
    return {row[0]: row[1:] for row in rows if row[0] in PLACES}


def drawn(number, seed, named, layers, kinds=KINDS, whole=False):
    """Mutant `number` from `layers`, program -> kind -> layers; None: no program has such a layer."""
    draw = random.Random(f"{seed}.{number}")
    kind = kinds[number % len(kinds)]
    for _ in range(60):
        _, program, name = draw.choice(named)
        if found := layers[name].get(kind):
            return Mutant(number, kind, program, name, "*" if whole else draw.choice(found))
    return None


def programs_of(options):
    """The (group, program, name) to draw from: those that zoo.py found healthy, those of an earlier draw, or those of
    list.txt that no draw has."""
    if os.path.basename(options.draw) == "list.txt":
        known = {m.name for path in glob.glob(os.path.join(zoo.HERE, "mutants*.txt")) for m in frozen(path)}
        return [entry for entry in listed() if entry[2] not in known]
    if options.draw.endswith(".txt"):
        return sorted({("", m.program, m.name) for m in frozen(options.draw)})
    fit = healthy(zoo.read(options.draw), score.load_marks())
    return [entry for entry in listed() if entry[2] in fit]


def listed():
    with open(os.path.join(zoo.HERE, "list.txt"), encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.startswith(GROUPS)]


def draw_all(options):
    """Writes the list of mutants."""
    named, kinds = programs_of(options), options.kinds.split(",")
    if options.programs:
        named = sorted(random.Random(options.seed).sample(named, options.programs))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        layers = dict(zip((name for _, _, name in named),
                          pool.map(lambda entry: layers_of(options, *entry[1:]), named)))
    each = (drawn(k, options.seed, named, layers, kinds, options.whole) for k in range(options.count))
    found = [m for m in each if m]
    with open(options.list, "w", encoding="utf-8") as f:
        f.write(f"# Drawn by mutants.py --seed {options.seed} --count {options.count} --kinds {options.kinds} "
                f"from {len(named)} programs\n")
        f.writelines("\t".join(map(str, dataclasses.astuple(m))) + "\n" for m in found)


def frozen(path):
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return [Mutant(int(row[0]), *row[1:]) for row in rows]


def parameters(folder):
    import numpy
    tensors = compare.read_safetensors(os.path.join(folder, "result.0"))
    return numpy.concatenate([numpy.frombuffer(data, numpy.float32)
                              for name, (_, _, data) in sorted(tensors.items()) if name != "losses" and
                              compare.kind_of(name) == "parameters"])


def effect(bad, good, fp32):
    """The error that the lowered op adds to the whole update: beyond that of the good twin, in units of it. The good
    twin's error is what the ordinary roundings of the program leave in the update, the floor of this update."""
    import numpy
    if not numpy.isfinite(bad).all():
        return 1e9
    bad, good, fp32 = (x.astype(float) for x in (bad, good, fp32))
    floor = numpy.linalg.norm(good - fp32)
    return math.sqrt(max(0.0, numpy.square(bad - fp32).sum() - floor ** 2)) / max(floor, 1e-30)


def code(mutant, form, precision="low"):
    """What a run of the mutant's program depends on: a good twin's constants and states are copied to themselves, and
    in fp32 its inputs too."""
    as_it_is = mutant.kind in ("constant", "state") or (mutant.kind == "cast" and precision == "fp32")
    if form == "good" and as_it_is:
        return precision, mutant.name
    return form, precision, *dataclasses.astuple(mutant)[1:]


def by_program(mutants):
    groups = {}
    for mutant in mutants:
        groups.setdefault(mutant.name, []).append(mutant)
    return list(groups.values())


def once(known, key, run):
    if key not in known:
        known[key] = run()
    return known[key]


def effects(options, mutants, work):
    """The lines of the mutants of one program, without mp-trace."""
    known = {}

    def run(mutant, form, precision="low"):
        folder = os.path.join(work, str(len(known)))
        done = forked(options, mutant, form, folder, precision=precision)
        values = parameters(folder) if done[0] == 0 else None
        shutil.rmtree(folder)
        return done, values

    lines = []
    for mutant in mutants:
        done = [once(known, code(mutant, *how), lambda how=how: run(mutant, *how))
                for how in (("bad",), ("good",), ("good", "fp32"))]
        failed = [told for told, _ in done if told[0] != 0]
        line = dataclasses.asdict(mutant) | {"key": mutant.key, "ran": not failed}
        lines.append(line | ({"why": runs.tail(failed[0][2])} if failed else
                             {"effect": effect(*(values for _, values in done)), "stdout": done[0][0][1].decode()}))
    return lines


def at_place(mutant, finding):
    """Whether the finding is at the lowered op: its layer, one inside or the one that holds it, and its phase. Of *
    the phase alone counts. A model that is part of another one has longer names ("net.model.3")."""
    layer, said = mutant.layer.removeprefix("module."), finding.get("layer") or ""  # reports leave out DDP's
    near = said == layer or said.startswith(layer + ".") or (said and layer.startswith(said + "."))
    near = near or said.endswith("." + layer)
    near = near or (layer == "*" and said != "")
    return finding.get("phase") in PLACES[mutant.kind] and (near or said in ("(optimizer)", "(update)"))


def judged(mutant, bad, good):
    """What the report adds to the good twin's: found at all, and the place of the first right finding."""
    usual = {(f["rule"], f["layer"], f["op"]) for f in good["findings"]}
    new = [f for f in bad["findings"] if f["severity"] != "note" and (f["rule"], f["layer"], f["op"]) not in usual]
    right = [place for place, finding in enumerate(new, 1) if at_place(mutant, finding)]
    return {"found": bool(new), "place": right[0] if right else 0, "all": [score.short(f) for f in new[:5]],
            "said": [f"{f['rule']} {f.get('layer')} {f.get('op')} {f.get('phase')}" for f in new[:5]]}


def order(line):
    """Which mutants are traced first: the strong ones, then the weak ones, then a sample of the others."""
    return 0 if line["effect"] >= 3 else 1 if line["effect"] >= TRACED_FROM else 2


def measure(options, lines, work):
    """`lines` of one program's mutants with what mp-trace says about them."""
    known, told = {}, []
    for line in lines:
        mutant = Mutant(*(line[f.name] for f in dataclasses.fields(Mutant)))

        def run(form, mutant=mutant):
            return zoo.traced(options, command(options.python, mutant, form), os.path.join(work, str(len(known))))

        bad, good = (once(known, code(mutant, form), lambda form=form: run(form)) for form in ("bad", "good"))
        if bad[1] is None or good[1] is None:
            told.append(line | {"ran": False, "why": "no report: " + runs.tail(bad[0][2])})
            continue
        told.append(line | judged(mutant, bad[1], good[1]) | {
            "traced": True, "transparent": (bad[0][0], bad[0][1].decode()) == (0, line["stdout"]), "gate": bad[2],
            "good_gate": good[2], "headline": bad[1]["verdict"]["headline"], "good": " ".join(code(mutant, "good")),
            "good_ops": good[1]["coverage"]["ops"],
            "good_errors": [score.short(f) for f in good[1]["findings"] if f["severity"] == "error"]})
    return told


def in_short(line):
    if not line["ran"]:
        return f"{line['key']} {line['layer']}: does not run: {line['why'][:160]}"
    if not line.get("traced"):
        return f"{line['key']} {line['layer']}: effect {line['effect']:.2f}"
    return (f"{line['key']} {line['layer']}: effect {line['effect']:.2f} place {line['place']} gate {line['gate']} "
            f"{line['said'][:2]} good {line['good_gate']}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mp-trace", default="")
    parser.add_argument("--python", default=os.path.join(zoo.ROOT, "build", "zoo-venv", "bin", "python"))
    parser.add_argument("--effects", default="", help="the effect of every mutant, measured without mp-trace")
    parser.add_argument("--results", default="", help="what mp-trace says about those that are traced")
    parser.add_argument("--draw", default="", help="results of zoo.py or an earlier list: the healthy programs; "
                        "list.txt: those that no list has")
    parser.add_argument("--seed", type=int, default=zoo.SEED)
    parser.add_argument("--list", default=LIST, help="the mutants")
    parser.add_argument("--kinds", default=",".join(KINDS), help="what is drawn")
    parser.add_argument("--programs", type=int, default=0, help="draw from so many programs; 0: from all")
    parser.add_argument("--whole", action="store_true", help="each changes all layers that its kind fits")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--limit", type=int, default=COUNT, help="mutants to run now")
    parser.add_argument("--only", default="*", help="pattern of NUMBER KIND NAME")
    parser.add_argument("--keep", default="", help="leave the files of the runs in this folder")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="", help="write the table of the results to this page")
    parser.add_argument("--part", default="mutants", help="the marked part of that page")
    return parser.parse_args()


def measure_effects(options):
    ready = {line["number"] for line in zoo.read(options.effects)}
    left = [m for m in frozen(options.list) if m.number not in ready and fnmatch.fnmatchcase(m.key, options.only)]
    options.results = options.effects
    zoo.record(options, by_program(left[:options.limit]), lambda group, work: effects(options, group, work), in_short)


def trace(options):
    ready = {line["number"] for line in zoo.read(options.results)}
    left = [line for line in zoo.read(options.effects) if line["ran"] and line["number"] not in ready and
            (line["effect"] >= TRACED_FROM or line["number"] % OTHERS == 0) and
            fnmatch.fnmatchcase(line["key"], options.only)]
    groups = {}
    for line in sorted(left, key=lambda x: (order(x), x["number"])):
        groups.setdefault((order(line), line["name"]), []).append(line)
    zoo.record(options, list(groups.values())[:options.limit],
               lambda lines, work: measure(options, lines, work), in_short)


def main():
    options = parse()
    os.environ["HF_HUB_OFFLINE"] = "1"
    if options.out:
        import tables
        ready = {line["number"]: line for line in zoo.read(options.effects) + zoo.read(options.results)}
        listed = "" if options.list == LIST else os.path.relpath(options.list, zoo.ROOT)
        tables.write_mutants(options.out, list(ready.values()), options.part, listed)
        return 0
    if options.draw:
        draw_all(options)
        return 0
    if not options.mp_trace:
        measure_effects(options)
        return 0
    options.mp_trace, options.mode = os.path.abspath(options.mp_trace), "trajectory"
    trace(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
