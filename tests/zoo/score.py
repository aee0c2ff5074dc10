"""What one run of the zoo shows: what its report holds, and how its findings and its twin were marked by a reader."""
import fnmatch
import os
import tomllib

# A difference of twin and fp32 run is explained where one of these counted something.
EXPLAINING = ("flips", "stale", "unshadowed", "failed", "lost", "regrouped", "relaid", "drawn")
MARKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "marks.toml")


def of_report(report, modules):
    """The parts of the report that the tables need. `modules`: the leaf modules that were called and
    trained, and all modules."""
    coverage = report["coverage"]
    counters = {k: v for k, v in coverage.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    counters["lost"] = coverage.get("seeds_after_step_0", 0) - coverage.get("external_after_step_0", 0)
    named = {row["layer"] for row in report["layers"] if not row["layer"].startswith("(")}
    ran = set(modules["ran"]) - {""}
    return {"counters": counters, "ops": coverage.get("ops", 0), "steps": len(report["steps"]),
            "layers": f"{len(ran & named)}/{len(ran)}", "layers_missing": sorted(ran - named)[:5],
            "layers_strange": sorted(n for n in named - set(modules["all"]) if not is_class(n))[:5],
            "notes": sorted({n["kind"] for n in report["notes"]}), "verdict": report["verdict"]["result"],
            "headline": report["verdict"]["headline"], "inconclusive": report["verdict"]["inconclusive"],
            "findings": [short(f) for f in report["findings"] if f["severity"] in ("error", "warning")]}


def is_class(name):
    """Whether the last part is a class (the model itself, a criterion), or the first one: a part of a module that
    nothing holds, such as the list of a weight's parametrizations before the model is made."""
    return name.rsplit(".", 1)[-1][:1].isupper() or name[:1].isupper()


def short(finding):
    kept = ("severity", "rule", "layer", "op", "phase", "step", "title", "text", "message", "source")
    return {k: finding[k] for k in kept if finding.get(k) is not None}


def explained(line):
    """The counters that say why the twin is not the fp32 run."""
    return {k: line["counters"][k] for k in EXPLAINING if line["counters"].get(k)}


def load_marks(path=MARKS):
    if not os.path.exists(path):
        return []
    with open(path, "rb") as f:
        return tomllib.load(f)["mark"]


def mark_of(line, finding, marks):
    """The first mark whose patterns match: {"true": bool, "why": text}; None: nobody has read this finding."""
    for mark in marks:
        if (fnmatch.fnmatchcase(line["key"], mark.get("key", "*")) and finding["rule"] == mark["rule"]
                and fnmatch.fnmatchcase(finding.get("op", ""), mark.get("op", "*"))
                and fnmatch.fnmatchcase(finding.get("layer", ""), mark.get("layer", "*"))
                and fnmatch.fnmatchcase(finding.get("phase", ""), mark.get("phase", "*"))
                and fnmatch.fnmatchcase(finding.get("message", ""), mark.get("message", "*"))
                and finding["severity"] in mark.get("severity", ["error", "warning"])):
            return mark
    return None


def counts(line, marks):
    """Findings by severity and mark: {("error", "true"): 2, ("warning", "unread"): 1}"""
    found = {}
    for finding in line.get("findings", []):
        mark = mark_of(line, finding, marks)
        word = "unread" if mark is None else "true" if mark["true"] else "false"
        found[finding["severity"], word] = found.get((finding["severity"], word), 0) + 1
    return found


def in_short(line):
    """One line of progress."""
    if not line["ran"]:
        return f"{line['key']}: does not run: {line['why'][:160]}"
    words = ["T=P" if line["transparent"] else f"T!=P {line['faults'][:2]}"]
    if "exact" in line:
        words.append("twin exact" if line["exact"] else f"twin {line['twin']['parameters']} {explained(line)}")
    words += [f"{line.get('steps')} steps", f"layers {line.get('layers')}", str(line.get("verdict"))]
    words += [f"{f['severity']} {f['rule']} {f.get('layer')} {f.get('op')}" for f in line.get("findings", [])[:3]]
    return f"{line['key']}: " + ", ".join(words)


def layers_right(line):
    """Whether every layer that was trained is in the report under its name, and no other name is."""
    seen, ran = map(int, line.get("layers", "0/0").split("/"))
    return seen == ran and not line["layers_strange"]
