"""After any edit, a run with a cache reports the same as a run without a cache.

Usage: incremental_test.py MP_LINT [--seed N] [--edits N] [--tree DIR]. Generated training programs, a
few to a tree, are edited at random, one place after another: lines moved, comments, new functions, regions opened
around calls into other files, imports removed, broken syntax, suppressions. After each edit both runs must give the
same findings, the same suppressed ones and the same states of files. `--tree` edits a copy of a real tree instead.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from generated_python_test import program

PROGRAMS = 4
# Above this size only files that something leads to are extracted (docs/ARCHITECTURE.md).
LARGE = 9 << 20


def indent_of(line):
    return line[:len(line) - len(line.lstrip())]


def blank(rng, lines, at):
    lines.insert(at, rng.choice(["", "# a remark", indent_of(lines[at]) + "# what follows"]))


def several_blank(rng, lines, at):
    lines[at:at] = [""] * rng.randrange(2, 30)


def remark(rng, lines, at):
    lines[at] += rng.choice(["  # as it was", "  # mp-lint: disable=MP301 -- measured", "  # mp-lint: disable"])


def append_constant(rng, lines, at):
    lines.append(f"_edit_{rng.randrange(10**6)} = {rng.randrange(100)}")


def append_function(rng, lines, at):
    name = f"added_{rng.randrange(10**6)}"
    lines += ["", "", f"def {name}(x, y):", *rng.choice([
        ["    return x @ y"],
        ["    return x.half() + 1e-8"],
        ["    with torch.autocast('cuda', dtype=torch.float16):", "        return (x @ y).sum()"],
        ["    key = lambda v: v[0]", "    return sorted(x, key=key)"],
        ["    scaler = torch.amp.GradScaler('cuda')", "    scaler.scale(x).backward()", "    scaler.step(y)"],
    ])]


def open_region(rng, lines, at):
    tab = indent_of(lines[at])
    dtype = rng.choice(["float16", "bfloat16"])
    lines[at:at + 1] = [f"{tab}with torch.autocast('cuda', dtype=torch.{dtype}):", "    " + lines[at]]


def remove(rng, lines, at):
    del lines[at]


def add_import(rng, lines, at):
    module, name = rng.choice([("shared", "norm"), ("low", "lower"), ("plain", "add"), ("p0.model", "Network")])
    lines.insert(0, f"from {module} import {name}")
    lines.append(f"print({name}(4))")


def remove_import(rng, lines, at):
    imports = [i for i, line in enumerate(lines) if line.startswith(("import ", "from "))]
    if imports:
        del lines[rng.choice(imports)]


def repeat(rng, lines, at):
    lines.insert(at, lines[at])


def other_dtype(rng, lines, at):
    old, new = rng.sample(["float16", "bfloat16", "float32"], 2)
    lines[:] = [line.replace(old, new) for line in lines]


def break_syntax(rng, lines, at):
    lines.insert(at, "def (:")


def nothing(rng, lines, at):
    pass


EDITS = [blank, blank, several_blank, remark, append_constant, append_function, append_function, open_region,
         open_region, remove, add_import, remove_import, repeat, other_dtype, break_syntax, nothing]


class Tree:
    def __init__(self, folder):
        self.folder, self.original, self.clock = folder, {}, time.time() - 10**6

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        # Old enough for its time stamp to be trusted; a different time for each edit.
        self.clock += 10
        os.utime(path, (self.clock, self.clock))

    def edit(self, rng, names):
        name = rng.choice(names)
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            text = f.read()
        self.original.setdefault(name, text)
        if rng.random() < 0.15:  # back to where it was
            self.write(name, self.original[name])
            return f"{name}: restored"
        lines = text.splitlines()
        done = []
        for change in rng.sample(EDITS, rng.choice([1, 1, 1, 2])):
            if lines:
                change(rng, lines, rng.randrange(len(lines)))
            done.append(change.__name__)
        self.write(name, "\n".join(lines) + "\n")
        return f"{name}: {', '.join(done)}"


def generated_tree(rng, folder, large):
    tree = Tree(folder)
    for n in range(PROGRAMS):
        for file in program(f"{rng.random()}"):
            tree.write(f"p{n}/{file.name}", file.text())
    tree.write("shared.py", "import torch\n\n\ndef norm(x):\n    return (x * x).mean()\n\n\nplain = 1\n")
    tree.write("user.py", "import torch\nfrom shared import norm\n\n\ndef run(x):\n    return norm(x)\n")
    tree.write("plain.py", "import torch\n\n\ndef add(a, b):\n    return torch.log(a + b)\n")
    tree.write("low.py", "import torch\n\n\ndef lower(x):\n    return x.half()\n")
    if large:
        tree.write("data/table.py", "# rows\n" * (LARGE // 7))
    return tree


def lint(binary, folder, *flags):
    done = subprocess.run([binary, "--isolated", "--select", "ALL", "--output", "json", *flags, "."], cwd=folder,
                          capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1, 2), f"exit {done.returncode}: {done.stderr[-300:]}"
    report = json.loads(done.stdout)
    units = [(u["path"], u["state"], u["message"], u["coverage"]) for u in report["units"]]
    return {"findings": report["findings"], "suppressed": report["suppressed"], "units": units}


def differences(remembered, fresh):
    for part in fresh:
        for entry in [e for e in fresh[part] if e not in remembered[part]][:5]:
            yield f"{part}: missing {entry}"
        for entry in [e for e in remembered[part] if e not in fresh[part]][:5]:
            yield f"{part}: wrong {entry}"
        if fresh[part] != remembered[part]:
            yield f"{part}: {len(remembered[part])}, not {len(fresh[part])}, or in another order"


def edit_and_compare(binary, rng, tree, names, edits, cache):
    failed = 0
    lint(binary, tree.folder, "--cache-dir", cache)
    for number in range(edits):
        what = tree.edit(rng, names)
        problems = list(differences(lint(binary, tree.folder, "--cache-dir", cache),
                                    lint(binary, tree.folder, "--no-cache")))
        if problems:
            failed += 1
            print(f"edit {number}, {what}:", *problems, sep="\n    ")
    return failed


def imports_of_what_is_low(binary, scratch):
    """A file of a large tree that nothing leads to begins to import what gives half, and stops again."""
    tree = generated_tree(random.Random(1), os.path.join(scratch, "imports"), True)
    cache = os.path.join(scratch, "imports-cache")
    plain = "import torch\n\n\ndef add(a, b):\n    return torch.log(a + b)\n"
    lowered = "import torch\nfrom low import lower\n\n\ndef add(a, b):\n    return torch.log(lower(a))\n"
    failed, counts = 0, []
    for text in [plain, lowered, plain + "# more\n", lowered + "# more\n"]:
        tree.write("plain.py", text)
        remembered, fresh = lint(binary, tree.folder, "--cache-dir", cache), lint(binary, tree.folder, "--no-cache")
        counts.append(sum(os.path.basename(f["file"]) == "plain.py" for f in fresh["findings"]))
        failed += bool(list(differences(remembered, fresh)))
    assert counts[1] > counts[0] and counts == counts[:2] * 2, f"no test of anything: {counts}"
    if failed:
        print("importing what is low is not noticed")
    return failed


def python_files(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder)
                  for name in names if name.endswith(".py"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lint", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--edits", type=int, default=240)
    parser.add_argument("--tree")
    args = parser.parse_args()
    failed = 0
    scratch = tempfile.mkdtemp(prefix="mp-incremental-")
    try:
        cache = os.path.join(scratch, "cache")
        if args.tree:
            folder = shutil.copytree(args.tree, os.path.join(scratch, "tree"), ignore=shutil.ignore_patterns(".git"))
            rng = random.Random(args.seed)
            failed = edit_and_compare(args.lint, rng, Tree(folder), python_files(folder), args.edits, cache)
        if not args.tree:
            failed += imports_of_what_is_low(args.lint, scratch)
        rounds = 0 if args.tree else args.edits // 20
        for n in range(rounds):
            rng = random.Random(f"{args.seed}:{n}")
            tree = generated_tree(rng, os.path.join(scratch, f"tree{n}"), n % 6 == 5)
            names = [name for name in python_files(tree.folder) if not name.startswith("data")]
            failed += edit_and_compare(args.lint, rng, tree, names, 20, cache)
    finally:
        shutil.rmtree(scratch)
    print(f"{args.edits} edits, {failed} after which the runs differ (seed {args.seed})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
