"""Runs the programs of reports/list.toml untraced and under mp-trace, with the fault and with its fix; JSON lines.

    reports.py --mp-trace BIN --results FILE --keep DIR [--list list-2.toml] [--only PATTERN] [--modes watch,trajectory]
    reports.py --results FILE [--list list-2.toml]

Without --mp-trace it prints the table of docs/evaluation.md. --keep has the recordings: those that are there are only
judged again. The programs print whether their fault shows; one whose fault does not show is "not reproduced".
"""
import os
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ZOO = os.path.dirname(HERE)
TESTS = os.path.dirname(ZOO)
sys.path += [os.path.join(TESTS, "evaluation"), ZOO]  # in this order: both have a score.py
import evaluate  # noqa: E402
import page  # noqa: E402
import programs  # noqa: E402
import score  # noqa: E402
import sets  # noqa: E402

TRUTH = ("layer", "op", "phase", "step", "rules", "why")
FORMS = {"fault": [], "fixed": ["--fixed"]}
TOLD = ("severity", "rule", "layer", "op", "phase", "step")


def load(name="list.toml"):
    with open(os.path.join(HERE, name), "rb") as f:
        return {name: {"key": name, **entry} for name, entry in tomllib.load(f).items()}


def case_of(entry):
    """The truth of a report, as tests/evaluation has it."""
    truth = {part: entry[part] for part in TRUTH}
    if entry.get("range"):
        truth["step"] = list(range(truth["step"][0], truth["step"][1] + 1))
    truth["step"] = truth["step"] or [None]  # of the run as a whole
    program = os.path.join(HERE, "programs", entry["key"] + ".py")
    return programs.Case(entry["key"], program, ranks=entry.get("ranks", 1), **truth)


def said_by(output):
    """The lines that a program prints itself: losses, bytes of its parameters, and whether the fault shows."""
    return [line for line in output.splitlines() if line.split(" ")[0] in ("step", "bytes:", "shows:")]


def untraced(options, case, form, folder):
    os.makedirs(folder, exist_ok=True)
    status, output = programs.run(programs.command(case, options.python, *FORMS[form]), folder)
    return said_by(output) if status == 0 else [f"ended with {status}: {evaluate.last_line(output)}"]


def traced(options, case, form, plain, folder):
    """What mp-trace said of one form of a program, and whether the program's own lines are the untraced ones."""
    outcome = evaluate.trace(options, case, form == "fixed", 1, folder)
    with open(os.path.join(folder, "output"), encoding="utf-8", errors="replace") as f:
        same = said_by(f.read()) == plain
    return {"same": same, "gate": outcome.gate, "trouble": outcome.fault,
            "findings": [{part: finding.get(part) for part in TOLD} for finding in outcome.findings]}


def measure(options, entry):
    case, line = case_of(entry), {"key": entry["key"], "shows": {}, "modes": {}}
    top = os.path.join(os.path.abspath(options.keep), entry["key"])
    for form in FORMS:
        plain = untraced(options, case, form, os.path.join(top, form, "plain"))
        line["shows"][form] = plain[-1].removeprefix("shows: ") if plain else "nothing"
        for options.mode in options.modes.split(","):
            done = traced(options, case, form, plain, os.path.join(top, form, options.mode))
            line["modes"].setdefault(options.mode, {})[form] = done
    return line


def verdict(entry, mode):
    """What the table says of one report in one mode."""
    case, fault, fixed = case_of(entry), mode["fault"], mode["fixed"]
    places = [all(score.compare(case, finding).values()) for finding in fault["findings"]]
    first = fault["findings"][0] if fault["findings"] else None
    parts = score.compare(case, first) if first else {}
    return {"said": page.place(first) if first else fault["trouble"] or "nothing",
            "first": bool(places and places[0]), "listed": any(places),
            "place": all(parts.get(part) for part in ("layer", "op", "phase", "step")),
            "silent": not fixed["findings"], "same": fault["same"] and fixed["same"]}


def in_short(entry, line):
    said = [f"{name}: {verdict(entry, mode)}" for name, mode in line["modes"].items()]
    return " ".join([f"shows {line['shows']}", *said])


def yes(value):
    return "yes" if value else "**no**"


def row(entry, line):
    reproduced = line["shows"] == {"fault": "yes", "fixed": "no"}
    cells = [entry["key"], entry["address"].removeprefix("https://github.com/"), yes(reproduced)]
    told = {name: verdict(entry, mode) for name, mode in line["modes"].items()}
    for name in told:
        cells.append(told[name]["said"] + ("" if entry["reach"] == "yes" else " (out of reach)"))
    right = [name for name in told if told[name]["first"]]
    cells += [", ".join(right) or ("listed" if any(t["listed"] for t in told.values()) else "**no**"),
              yes(all(t["silent"] for t in told.values())), yes(all(t["same"] for t in told.values()))]
    return "| " + " | ".join(page.cell(c) for c in cells) + " |"


def table(entries, lines):
    modes = list(lines[0]["modes"])
    head = ["report", "address", "reproduced", *(f"first finding, {m}" for m in modes), "right and first",
            "fix silent", "traced = untraced"]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
                      *(row(entries[line["key"]], line) for line in lines)])


def main():
    parser = sets.parser(__doc__)
    parser.set_defaults(python=os.path.join(sets.ROOT, ".venv", "bin", "python"), device="cpu")
    parser.add_argument("--keep", default="", help="folder for the recordings")
    parser.add_argument("--list", default="list.toml", help="the list, in this folder")
    parser.add_argument("--modes", default="watch,trajectory")
    options = parser.parse_args()
    entries = load(options.list)
    if not options.mp_trace:
        print(table(entries, sets.read(options.results)))
        return 0
    options.mp_trace = os.path.abspath(options.mp_trace)
    sets.record(options, entries.values(), lambda entry: measure(options, entry),
                lambda line: in_short(entries[line["key"]], line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
