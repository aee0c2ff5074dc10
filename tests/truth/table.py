"""docs/truth.md: one section per torch, each written by a run of the suite."""
import datetime
import os
import re

import compare
import runs

INTRODUCTION = """# Truth

Written by `tests/truth/truth.py`; do not edit. Each case runs a user's script three times: in low precision; the
same under `mp-trace --mode trajectory`; and in plain fp32 (no autocast, no scaler, no 16-bit tensor, with the same
steps skipped as in the first run). Untraced runs with one process are forks of a Python that has imported torch. The
traced run is always a new process.

- **T=P**: exit status, stdout and saved files of the traced run are equal to those of the untraced run, byte for byte.
- **W=F**: the twin's losses, parameters, gradients and optimizer state are equal to those of the fp32 run, byte for
  byte. `k/n` counts losses and tensors over all ranks. Elements that differ only in the sign of a zero are counted
  under *zero signs*, not as differences.
- *low against fp32*: largest relative difference of a loss and of a parameter between the low-precision run and the
  fp32 run. The case proves nothing if it is 0.
- *seeded*: seeded shadows after step 0, for values that come from outside of torch (a Python number in
  `torch.tensor`). *lost*: seeded shadows that had a history; there must be none.
- *failed*: ops of the twin that threw. *flips*: integer and boolean results that differ in the twin.
- *regrouped*: sums of gradients that the twin adds in another order than the fp32 run, because a cast is a node of the
  graph in 16 bits and nothing in fp32. It is 0 where the twin adds them as the fp32 run does. Where it cannot, the
  case runs once more in fp32 with casts that copy, whose graph has these nodes: the twin must equal that run. This
  shows that nothing but the grouping differs.
"""


def total(results, read):
    merged = compare.Match()
    for r in results:
        merged.add(read(r))
    return merged


def row(results):
    """All seeds of one case in one line."""
    columns = [total(results, lambda r: r.losses)]
    columns += [total(results, lambda r, k=k: r.matches[k]) for k in compare.KINDS]
    zeros = sum(m.zero_signs for m in columns)
    def counted(name):
        return sum(r.counters.get(name, 0) for r in results)
    red = [runs.verdict(r)[1] for r in results if runs.verdict(r)[0]]
    expected, name = results[0].expected(), " ".join([results[0].case.name, *results[0].case.trace])
    outcome = "RED: " + red[0][:100].replace("|", "/") if red else (
        "exact" if expected is None else f"as expected ({expected.counter or 'see below'})")
    cells = [name, str(results[0].case.ranks), str(len(results)),
             str(sum(r.skipped for r in results)), "yes" if all(r.transparent for r in results) else "**no**",
             *map(str, columns), str(zeros), str(counted("seeds_after_step_0")), str(counted("lost")),
             str(counted("failed")), str(counted("flips")), str(counted("regrouped")),
             f"{max(r.low_loss for r in results):.0e}, {max(r.low_weight for r in results):.0e}", outcome]
    return "| " + " | ".join(cells) + " |"


def cases(results):
    lines = ["| case | ranks | seeds | skipped steps | T=P | losses | parameters | gradients | optimizer | zero signs "
             "| seeded | lost | failed | flips | regrouped | low against fp32 | verdict |", "|" + "---|" * 17]
    grouped = {}
    for r in results:
        grouped.setdefault(r.case.name, []).append(r)
    lines += [row(group) for group in grouped.values()]
    inexact = [(g[0].case.name, g[0].expected()) for g in grouped.values() if g[0].expected()]
    if inexact:
        lines += ["", "Not exact, with the reason:", ""]
        for name, why in inexact:
            counts = [r.counters.get(why.counter, 0) for r in grouped[name]]
            shown = f"Shown by *{why.counter}* = {', '.join(map(str, counts))}." if why.counter \
                else "No counter shows it, because the twin repeats the ops of the run."
            shown += " Equal to the fp32 run whose casts copy." if why.copies else ""
            lines.append(f"- `{name}`: {why.reason}. {shown}")
    exact = sum(1 for g in grouped.values() if all(r.exact for r in g))
    lines += ["", f"{len(grouped)} cases, {exact} exact."]
    return lines


def mutations(found, unreachable):
    lines = ["Each row is a run with one rule of the test adapter switched off (`MP_TRACE_TEST_DISABLE_RULE`).", "",
             "| rule | case | noticed | by |", "|---|---|---|---|"]
    for rule, (case, red, why) in found.items():
        lines.append(f"| {rule} | {case} | {'yes' if red else '**no**'} | {why[:140].replace('|', '/')} |")
    return lines + [f"| {rule} | - | not reachable on a CPU | {why} |" for rule, why in unreachable.items()]


def machine():
    """The class of processor that decides which kernels run; nothing that names this one."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            text = f.read()
    except OSError:
        return "unknown processor"
    flags = set(re.search(r"^flags\s*:(.*)$", text, re.M).group(1).split()) if "flags" in text else set()
    vendor = re.search(r"^vendor_id\s*:\s*(\S+)", text, re.M)
    widest = next((f for f in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if f in flags), "no vector units")
    return f"{vendor.group(1) if vendor else 'unknown'}, {widest}, {os.cpu_count()} cores"


def write(path, title, lines, seconds, command=""):
    """Replaces the section with this title, or appends it; the others stay."""
    sections = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for part in re.split(r"^## ", f.read(), flags=re.M)[1:]:
                name, _, body = part.partition("\n")
                sections[name.strip()] = body.strip("\n")
    for name in [n for n in sections if n.split(" (")[0] == title.split(" (")[0]]:
        del sections[name]
    head = [f"`{command}`", ""] if command else []
    head += [f"{datetime.date.today().isoformat()}, {machine()}, {seconds:.0f} s.", ""]
    sections[title] = "\n".join(head + lines)
    ordered = sorted(sections, key=lambda n: (n.startswith("Rules"), n))
    with open(path, "w", encoding="utf-8") as f:
        f.write(INTRODUCTION)
        for name in ordered:
            f.write(f"\n## {name}\n\n{sections[name]}\n")
