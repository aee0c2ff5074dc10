"""docs/evaluation.md: each script that measures something writes the part of the page that is its own."""
import datetime
import os
import platform
import re
import textwrap

import programs
import score


def cell(text):
    return str(text).replace("|", "/").replace("\n", " ").strip()


def key(outcome):
    return outcome.case.name + (" fixed" if outcome.fixed else "")


def place(finding):
    """A finding in one line: rule, layer, op, phase, step."""
    step = finding.get("step")
    return (f"{finding.get('rule')} {finding.get('layer') or '(run)'} {finding.get('op') or '-'} "
            f"{finding.get('phase')} {'-' if step is None else f'step {step}'}")


def machine():
    return f"{datetime.date.today()}, {os.cpu_count()} shared {platform.machine()} cores, Debian 12, no GPU"


def command_line(options):
    patterns = "" if options.cases == "*" else f" --cases '{options.cases}'"
    quick = " --quick" if options.quick else ""
    return ("python3 tests/evaluation/evaluate.py --mp-trace build/release/bin/mp-trace "
            f"--seeds {options.seeds}{quick}{patterns}")


def truth_of(case):
    def first(words):
        return words[0] + (" ..." if len(words) > 1 else "")
    return f"{first(case.layer)} {first(case.op)}, {case.phase[0]}, step {case.step[0]}"


def grouped(outcomes):
    groups = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome), []).append(outcome)
    return groups


def share(group, of):
    return f"{sum(1 for o in group if of(o))}/{len(group)}"


def bug_row(group, fixed):
    case = group[0].case
    first = next((o for o in group if not score.right(o)), group[0])
    said = first.fault or (place(first.findings[0]) if first.findings else "nothing")
    parts = [sum(score.compare(case, o.findings[0])[p] for o in group if o.findings) for p in score.PARTS]
    return [case.name, case.case or "own", truth_of(case), said, share(group, lambda o: o.findings),
            *(f"{p}/{len(group)}" for p in parts), share(group, score.right),
            share(group, score.place_of), share(group, lambda o: o.gate == case.gate),
            share(fixed, score.right) if fixed else "-"]


def bugs(groups):
    lines = ["| program | known defect | truth | first finding | found | rule | layer | op | phase | step | all right "
             "| right one in the list | gate | fixed twin silent |", "|" + "---|" * 14]
    for name, group in groups.items():
        if group[0].buggy:
            lines.append("| " + " | ".join(cell(c) for c in bug_row(group, groups.get(name + " fixed"))) + " |")
    return "\n".join(lines)


def alarms(outcomes):
    """(alarms, op calls, runs with an alarm, runs) of the programs without a bug."""
    silent = [o for o in outcomes if not o.buggy and not o.fault]
    return (sum(len(o.findings) for o in silent), sum(o.ops for o in silent),
            sum(1 for o in silent if o.findings), len(silent))


def false_alarms(outcomes):
    found, ops, loud, runs = alarms(outcomes)
    low, high = score.wilson(found, ops)
    low_run, high_run = score.wilson(loud, runs)
    return (f"{found} findings in {ops:,} ops of {runs} runs without a bug: {1e5 * found / max(ops, 1):.2f} in 100,000 "
            f"op-steps (95 % interval {1e5 * low:.2f} to {1e5 * high:.2f}); {loud} of {runs} runs with any "
            f"({100 * low_run:.0f} to {100 * high_run:.0f} %).")


def loud_runs(groups):
    lines = [f"- {name}, seed {o.seed}: " + "; ".join(place(f) for f in o.findings[:3])
             for name, group in groups.items() for o in group if not o.buggy and o.findings]
    return "\n".join(lines)


def summary(outcomes):
    buggy = [o for o in outcomes if o.buggy]
    if not outcomes:
        return "no case was chosen"
    return (f"{sum(map(score.right, buggy))} of {len(buggy)} runs with a bug are right, "
            f"{sum(1 for o in buggy if o.findings)} found; " + false_alarms(outcomes))


def section(outcomes, misses, options):
    groups = grouped(outcomes)
    parts = [f"Measured {machine()}:", "", "```sh", command_line(options), "```", "", bugs(groups), "",
             false_alarms(outcomes)]
    loud = loud_runs(groups)
    if loud:
        parts += ["", "Alarms on programs without a bug:", "", loud]
    faults = [f"- {key(o)}, seed {o.seed}: {o.fault}" for o in outcomes if o.fault]
    if faults:
        parts += ["", "Runs without a verdict:", "", *faults]
    known = [f"- **{name}**: {why}" for name, why in misses.items() if name in groups]
    if known:
        parts += ["", "What is missed, and why:", "", *known]
    return "\n".join(parts)


def wrapped(text):
    """Lines of prose fit the page; tables and code stay as they are."""
    code, out = False, []
    for line in text.split("\n"):
        code ^= line.startswith("```")
        prose = not code and not line.startswith(("|", "```"))
        indent = "  " if line.startswith("- ") else ""
        out.append(textwrap.fill(line, 118, subsequent_indent=indent, break_on_hyphens=False) if prose else line)
    return "\n".join(out)


def write(path, name, text):
    """Replaces the text between the marks of `name`."""
    with open(path, encoding="utf-8") as f:
        old = f.read()
    begin, end = f"<!-- {name}: written by a script -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if not pattern.search(old):
        raise SystemExit(f"{path}: no part '{name}'; it needs the lines {begin} and {end}")
    new = pattern.sub(lambda _: f"{begin}\n\n{wrapped(text)}\n\n{end}", old)
    with open(path, "w", encoding="utf-8") as f:
        f.write(new)
