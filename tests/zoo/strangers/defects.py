"""Runs scripts of second.txt with the defects of defects.txt, and asks whether mp-trace names their places.

    defects.py --mp-trace BIN --checkouts DIR --results FILE [--list third|fourth|fifth|sixth] [--most N]
               [--only PATTERN]

--list third: scripts of third.txt, defects of defects-third.txt; the others alike. Each runs with the defect and, as
its good twin, with the same code in fp32, untraced and traced; the good twin in fp32 too, with which mp-trace's fp32
twin is compared. The effect is that of mutants.py. A finding counts if the good twin does not have it. The scripts need
the libraries of requirements.txt beside this file, in the Python of --python.
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import sets  # noqa: E402
import mutants  # noqa: E402
import score  # noqa: E402
import strangers  # noqa: E402


LISTS = {"second": "defects.txt", "third": "defects-third.txt", "fourth": "defects-fourth.txt",
         "fifth": "defects-fifth.txt", "sixth": "defects-sixth.txt"}


def programs(listed="second"):
    scripts = {p["key"].split("/")[0]: p for p in reversed(list(strangers.programs(listed)))}
    for name, kind, root, layer in sets.rows(os.path.join(HERE, LISTS[listed])):
        yield {**scripts[name], "key": f"{name} {kind} {layer}", "kind": kind, "root": root, "layer": layer}


def measure(options, program):
    if options.keep:
        options.work = os.path.join(os.path.abspath(options.keep), program["key"].replace(" ", "-"))
        os.makedirs(options.work)
        return measured(options, program)
    with tempfile.TemporaryDirectory(prefix="mp-defect-") as options.work:
        return measured(options, program)


def measured(options, program):
    line = {k: program[k] for k in ("key", "kind", "root", "layer", "regime")} | {"ran": False}
    runs, reports = {}, {}
    for name, form, precision in (("bad", "bad", "low"), ("good", "good", "low"), ("fp32", "good", "fp32")):
        defect = ["--defect", program["kind"], program["root"], program["layer"], form]
        runs[name] = strangers.run(options, program, name, precision, more=defect)
        if runs[name][0] != 0 or runs[name][2] is None:
            return line | {"why": f"{name}: {runs[name][0]}: {runs[name][1]}"}
        if not runs[name][2]["changed"]:
            return line | {"why": f"no outermost module is a {program['root']}"}
        if precision == "low":
            trace = os.path.join(options.work, name + ".trace")
            twin = ["--save-twin", os.path.join(options.work, name + ".twin")]
            prefix = [options.mp_trace, "--mode", "trajectory", "-o", trace, "--no-build", *twin, "--"]
            done = strangers.run(options, program, "traced-" + name, precision, prefix, defect)
            report, gate = strangers.judged(options, trace)
            if report is None:
                return line | {"why": f"no report: {done[1]}"}
            reports[name] = report
            line |= {f"{name}_gate": gate, f"{name}_transparent": (done[0], done[2]) == (runs[name][0], runs[name][2])}
    import numpy
    values = [numpy.load(os.path.join(options.work, name + ".json.npy")) for name in ("bad", "good", "fp32")]
    mutant = mutants.Mutant(0, program["kind"], "", "", program["layer"])
    twin = strangers.twin_of(os.path.join(options.work, "good.twin"))
    line |= {"twin": [sum(h in twin for h in runs["fp32"][2]["hashes"]), len(runs["fp32"][2]["hashes"])],
             "backwards": len(runs["good"][2]["losses"]), "optimizer_steps": runs["good"][2]["steps"],
             "told": score.of_report(reports["good"], {"ran": [], "all": []})}
    return line | {"ran": True, "effect": mutants.effect(*values)} | mutants.judged(mutant, *reports.values()) | {
        "good": [f"{f['severity']} {f['rule']} {f.get('layer')} {f.get('op')}" for f in reports["good"]["findings"]
                 if f["severity"] != "note"]}


def in_short(line):
    return (f"effect {line['effect']:.2f} place {line['place']} gate {line['bad_gate']} {line['said'][:3]} "
            f"good gate {line['good_gate']} {line['good']} "
            f"twin {line['twin']} {score.explained(line['told'])} "
            f"transparent {line['bad_transparent'], line['good_transparent']}")


def main():
    parser = sets.parser(__doc__)
    parser.add_argument("--list", choices=LISTS, default="second")
    parser.add_argument("--most", default="60", help="backwards after which a script ends")
    parser.add_argument("--keep", default="", help="leave the recordings and logs of each program in this folder")
    options = parser.parse_args()
    options.mp_trace, options.checkouts = os.path.abspath(options.mp_trace), os.path.abspath(options.checkouts)
    strangers.LISTS[options.list](options.checkouts, options.python)
    sets.record(options, programs(options.list), lambda program: measure(options, program), in_short)
    return 0


if __name__ == "__main__":
    sys.exit(main())
