"""The tables of docs/evaluation.md about programs of others, from the lines of the runners' results files."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "evaluation"))
import page  # noqa: E402
import score  # noqa: E402


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(page.cell(c) for c in row) + " |" for row in rows])


def grouped(lines, of):
    groups = {}
    for line in lines:
        groups.setdefault(of(line), []).append(line)
    return groups


def share(lines, of):
    return f"{sum(1 for line in lines if of(line))}/{len(lines)}"


def marked(lines, severity, marks):
    """"true + false (+ unread)" findings of one severity."""
    total = {"true": 0, "false": 0, "unread": 0}
    for line in lines:
        for (found, word), count in score.counts(line, marks).items():
            if found == severity:
                total[word] += count
    return f"{total['true']} + {total['false']}" + (f" ({total['unread']} unread)" if total["unread"] else "")


HEAD = ("group", "ran", "traced = untraced", "twin = fp32", "inexact, a counter says why", "steps right",
    "layers right",
        "errors: true + false", "warnings: true + false", "without a false error")


def zoo_row(name, lines, marks):
    ran = [line for line in lines if line["ran"]]
    twins = [line for line in ran if "exact" in line]
    inexact = [line for line in twins if not line["exact"]]
    return [name, f"{len(ran)}/{len(lines)}", share(ran, lambda x: x["transparent"]), share(twins,
        lambda x: x["exact"]),
            share(inexact, score.explained), share(ran, lambda x: x.get("steps_right")), share(ran, score.layers_right),
            marked(ran, "error", marks), marked(ran, "warning", marks),
            share(ran, lambda x: not score.counts(x, marks).get(("error", "false")))]


def reasons(lines, marks):
    """One row for each mark: what was found, how often, true or not, why."""
    rows = {}
    for line in lines:
        for finding in line.get("findings", []):
            mark = score.mark_of(line, finding, marks)
            key = (finding["rule"], finding.get("op") or "-", finding["severity"],
                   "unread" if mark is None else "true" if mark["true"] else "false", mark["why"] if mark else "")
            rows.setdefault(key, set()).add(line["key"])
    return [[rule, op, severity, word, len(keys), sorted(keys)[0], why]
            for (rule, op, severity, word, why), keys in sorted(rows.items(), key=lambda item: -len(item[1]))]


def zoo_text(lines, marks, command):
    twins = [line for line in lines if line["mode"] == "trajectory"]
    rows = [zoo_row(name, group, marks) for name, group in sorted(grouped(twins, lambda x: x["group"]).items())]
    by_regime = [zoo_row(name, group, marks) for name, group in sorted(grouped(twins, lambda x: x["regime"]).items())]
    parts = [f"Measured {page.machine()}:", "", "```sh", command, "```", "", table(HEAD, [*rows, zoo_row("**all**",
        twins, marks)]),
             "", table(("regime", *HEAD[1:]), by_regime)]
    for mode in ("watch", "step"):
        other = [line for line in lines if line["mode"] == mode and line["ran"]]
        if other:
            parts += ["", f"Mode {mode}: {share(other, lambda x: x['transparent'])} traced runs equal to the untraced "
                      f"run; errors {marked(other, 'error', marks)}, warnings {marked(other, 'warning', marks)} "
                      "(true + false)."]
    parts += ["", "Every finding, read:", "", table(("rule", "op", "severity", "is", "programs", "for example",
        "cause"),
                                                   reasons(lines, marks))]
    inexact = [line for line in twins if line["ran"] and not line.get("exact", True)]
    if inexact:
        parts += ["", "Twins that are not the fp32 run:", "", *(f"- {x['key']}: losses {x['losses']}, parameters "
                  f"{x['twin']['parameters']}; " + (", ".join(f"{k} {v}" for k, v in score.explained(x).items()) or
                                                    "no counter") for x in sorted(inexact, key=lambda x: x["key"]))]
    wrong = [x for x in lines if x["ran"] and (not x["transparent"] or not x.get("steps_right"))]
    if wrong:
        parts += ["", "Not the untraced run, or other steps:", "",
                  *(f"- {x['key']} ({x['mode']}): " + ("; ".join(x["faults"])[:200] or f"{x.get('steps')} steps")
                    for x in wrong)]
    absent = [x for x in twins if not x["ran"]]
    if absent:
        parts += ["", "Programs that do not train in this regime, untraced:", "",
                  *(f"- {x['key']}: {x['why'].rsplit(' | ', 1)[-1][:140]}" for x in sorted(absent,
                      key=lambda x: x["key"]))]
    return "\n".join(parts)


def write_zoo(path, lines, part):
    page.write(path, part, zoo_text(lines, score.load_marks(), "tests/zoo/venv && build/zoo-venv/bin/python "
                                     "tests/zoo/zoo.py --mp-trace build/release/bin/mp-trace --results zoo.jsonl"))


def lacks_truth(line):
    """Whether the program met a value that is not finite, and the run that looks for its origin ran out of time."""
    return line["ran"] and not line["truth"] and line["ended"].startswith("not finite")


def said_first(line):
    return "; ".join(f"{f['rule']} {f.get('op')} {os.path.basename(f.get('source') or '')}"
                     for f in line["findings"][:2]) or f"nothing, {line['verdict']}"


def public_row(name, lines):
    ran = [line for line in lines if line["ran"]]
    bad = [line for line in ran if line["truth"]]
    healthy = [line for line in ran if not line["truth"] and not lacks_truth(line)]
    return [name, share(lines, lambda x: x["ran"]), share(ran, lambda x: x["transparent"]), len(bad),
            share(bad, lambda x: x["findings"]), share(bad, lambda x: x["named"]), share(bad,
                lambda x: x["named"] == 1),
            share(healthy, lambda x: not any(f["severity"] == "error" for f in x["findings"]))]


def public_text(lines):
    head = ("set", "ran", "traced = untraced", "with a value that is not finite", "something found",
        "right op and line",
            "right one first", "the others without an error")
    rows = [public_row(f"{name} {dtype}{', goes on' if more else ''}", group) for (name, dtype, more), group in
            sorted(grouped(lines, lambda x: (x["group"], x["dtype"], x["more"])).items())]
    ran = [x for x in lines if x["ran"]]
    missed = [f"- {x['key']}: first is {x['truth']['op']} {' '.join(x['truth']['lines'][-1:])}; said: {said_first(x)}"
              for x in ran if x["truth"] and x["named"] != 1]
    unknown = [f"- {x['key']}; said: {said_first(x)}" for x in ran if lacks_truth(x)]
    alarms = [f"- {x['key']}: " + "; ".join(f"{f['severity']} {f['rule']} {f.get('layer')} {f.get('op')}"
              for f in x["findings"][:3])
              for x in ran if not x["truth"] and not lacks_truth(x) and x["findings"]]
    absent = sorted({f"- {x['path']}: {x['why'].rsplit(' | ', 1)[-1][:140]}" for x in lines if not x["ran"]})
    parts = [f"Measured {page.machine()}:", "", "```sh", "build/zoo-venv/bin/python tests/zoo/public/public.py "
             "--mp-trace build/release/bin/mp-trace --checkouts DIR --results public.jsonl", "```", "", table(head,
                 rows)]
    for title, found in (("Misses, and places that are not the first finding:", missed),
                         ("The run that looks for the first value that is not finite ran out of time:", unknown),
                         ("Findings on runs whose values are all finite:", alarms), ("Programs that do not run here:",
                             absent)):
        parts += ["", title, "", *found] if found else []
    return "\n".join(parts)


def write_public(path, lines):
    page.write(path, "public", public_text(lines))


BINS = ((0, 1), (1, 3), (3, 10), (10, float("inf")))


def mutant_row(name, lines):
    traced = [x for x in lines if x.get("traced")]
    return [name, len(lines), len(traced), share(traced, lambda x: x["found"]), share(traced, lambda x: x["place"]),
            share(traced, lambda x: x["place"] == 1), share(traced, lambda x: x["gate"] == 1)]


def mutants_text(lines, listed=""):
    """`listed`: the list, where it is not the first."""
    ran = [x for x in lines if x["ran"]]
    head = ("mutants", "number", "traced", "found", "right place in the list", "right place first", "gate 1")
    rows = []
    for low, high in BINS:
        name = f"effect on the update of {low} to {high:g} floors" if high < float("inf") else f"above {low} floors"
        rows.append(mutant_row(name, [x for x in ran if low <= x["effect"] < high]))
    strong = [x for x in ran if x["effect"] >= 3]
    rows += [mutant_row(f"above 3 floors: {kind}", group) for kind, group in sorted(grouped(strong,
        lambda x: x["kind"]).items())]
    traced = [x for x in ran if x.get("traced")]
    good = {x["good"]: x for x in traced}.values()  # a good twin may serve several mutants
    ops, alarms = sum(x["good_ops"] for x in good), sum(len(x["good_errors"]) for x in good)
    command = "build/zoo-venv/bin/python tests/zoo/mutants.py" + (f" --list {listed}" if listed else "")
    parts = [f"Measured {page.machine()}, {len(ran)} of {len(lines)} mutants that were started did run:", "", "```sh",
             f"{command} --effects effects.jsonl", f"{command} --effects effects.jsonl "
             "--mp-trace build/release/bin/mp-trace --results mutants.jsonl",
             "```", "", table(head, rows), "",
             f"The same programs with the op in fp32: {alarms} errors in {ops:,} op-steps, "
             f"{1e5 * alarms / max(ops, 1):.2f} in 100,000."]
    missed = [f"- {x['key']}: {x['effect']:.1f} floors; said: " + ("; ".join(x["said"][:2]) or "nothing")
              for x in sorted(strong, key=lambda x: -x["effect"]) if x.get("traced") and x["place"] != 1]
    return "\n".join(parts + (["", "Above 3 floors and not named first:", "", *missed] if missed else []))


def write_mutants(path, lines, part, listed=""):
    page.write(path, part, mutants_text(lines, listed))
