"""After any edit, a run with a cache reports the same as a run without a cache.

Usage: incremental_test.py MP_LINT [--seed N] [--edits N] [--tree DIR]. Generated training programs, a
few to a tree, are edited at random, one place after another: lines moved, comments, new functions, regions opened
around calls into other files, imports removed, broken syntax, suppressions. A second tree has CUDA units and headers:
headers are edited, added in front of others and removed, flags change, files are touched. After each edit both runs
must give the same findings, the same suppressed ones and the same states of files. `--tree` edits a copy of a real
tree instead.
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
    # Without facts, in a whole project: its imports decide whether something calls lower().
    tree.write("start.py", "from low import lower\n\n\ndef go(x):\n    return lower(x)\n")
    os.makedirs(os.path.join(folder, ".git"))
    if large:
        tree.write("data/table.py", "# rows\n" * (LARGE // 7))
    return tree


def lint(binary, folder, *flags):
    command = [binary, "--isolated", "--cuda", "stubs", "--select", "ALL", "--output", "json", *flags, "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
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


def calls_of_other_files(binary, scratch):
    """A file in the slice of a large tree gets functions: one that calls torch, one that calls another file."""
    tree = generated_tree(random.Random(2), os.path.join(scratch, "calls"), True)
    cache = os.path.join(scratch, "calls-cache")
    own = "import torch\nimport plain\n\n\ndef lower(x):\n    return x.half()\n"
    library = own + "\n\ndef soft(x):\n    return torch.softmax(x, -1)\n"
    other = own + "\n\ndef more(x):\n    return plain.add(x, x)\n"
    failed, counts = 0, []
    for text in [own, library, other, library + "# more\n", other + "# more\n"]:
        tree.write("low.py", text)
        remembered, fresh = lint(binary, tree.folder, "--cache-dir", cache), lint(binary, tree.folder, "--no-cache")
        counts += [c["functions"] for path, _, _, c in fresh["units"] if os.path.basename(path) == "plain.py"]
        failed += bool(list(differences(remembered, fresh)))
    assert counts[0] == counts[1] == counts[3] < counts[2] == counts[4], f"no test of anything: {counts}"
    if failed:
        print("a call of another file is not noticed")
    return failed


LOADS = """import torch
import yaml

cfg = yaml.safe_load(open("config.yaml"))
model = torch.nn.Linear(4, 4).to(getattr(torch, cfg["model"]["dtype"]))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
"""


def edits_of_data(binary, scratch):
    """A YAML file that a program loads changes, breaks, goes, and comes back in the directory above."""
    tree, cache = Tree(os.path.join(scratch, "data")), os.path.join(scratch, "data-cache")
    tree.write("src/train.py", LOADS)
    failed, counts = 0, []
    beside = "src/config.yaml"
    for name, text in [(beside, "model: {dtype: bfloat16}\n"), (beside, "model: {dtype: float32}\n"),
                       (beside, "# low\n\nmodel:\n  dtype: bfloat16\n"), (beside, "model: {dtype: [\n"),
                       (beside, None), ("config.yaml", "model: {dtype: bfloat16}\n")]:
        if text is None:
            os.remove(os.path.join(tree.folder, name))
        else:
            tree.write(name, text)
        remembered, fresh = lint(binary, tree.folder, "--cache-dir", cache), lint(binary, tree.folder, "--no-cache")
        counts.append(sum(f["rule"] == "MP501" for f in fresh["findings"]))
        failed += bool(list(differences(remembered, fresh)))
    assert counts == [1, 0, 1, 0, 0, 1], f"the values of the file are not read: {counts}"
    if failed:
        print("an edit of a data file is not noticed")
    return failed


LAMBDAS = {"m.py": """import torch


def run(batches):
    first = map(lambda x: x.half() + 1e-3, batches)
    second = map(lambda x: torch.sum(x.half(), dtype=torch.float16) + 1e-8, batches)
    return [first, second]
""", "a.cu": """#include <cuda_fp16.h>
template <class F> void each(F f, int n) { for (int i = 0; i < n; ++i) f(i); }
void fill(const __half* x, __half* out, int n) {
    each([&](int i) { out[i] = x[i]; }, n);
    each([&](int i) {
        out[i] = __hadd(x[i], __float2half(1e-9f));
    }, n);
}
"""}


def lines_of_lambdas(binary, scratch):
    """A comment above a lambda with a finding moves the finding, and nothing is linked or judged again."""
    tree, cache = Tree(os.path.join(scratch, "lambdas")), os.path.join(scratch, "lambdas-cache")
    for name, text in LAMBDAS.items():
        tree.write(name, text)
    before = lint(binary, tree.folder, "--cache-dir", cache)["findings"]
    for mark, above in [("#", "def run"), ("#", "    second"), ("//", "void fill"), ("//", "    each([&](int i) {\n")]:
        name = "m.py" if mark == "#" else "a.cu"
        tree.write(name, LAMBDAS[name].replace(above, f"{mark} more\n{above}"))
        command = [binary, "--isolated", "--cuda", "stubs", "--select", "ALL", "--stats", "--cache-dir", cache, "."]
        stats = subprocess.run(command, cwd=tree.folder, capture_output=True, text=True, timeout=600).stderr
        assert "stats: extract" in stats and "stats: link" not in stats, f"a comment above {above!r}: {stats}"
        after, fresh = lint(binary, tree.folder, "--cache-dir", cache), lint(binary, tree.folder, "--no-cache")
        assert not list(differences(after, fresh)), f"a comment above {above!r}"
        assert len(before) > 2 and after["findings"] != before, "no test of anything"
    return 0


HEADER = """#pragma once
#include <cuda_fp16.h>

template <class T>
__device__ T total(const T* x, int n) {
    T acc = T(0.f);
    for (int i = 0; i < n; ++i) acc = acc + x[i];
    return acc;
}
"""
UNIT = """#include "total.cuh"

static __device__ float square(float x) { return x * x; }

__global__ void kernel(const __half* x, __half* out, int n) {
    out[0] = total(x, n);
    __half acc = __float2half(0.f);
    for (int i = 0; i < n; ++i) acc = __hadd(acc, x[i]);
    out[1] = __hadd(acc, __float2half(square(1e-9f)));
#ifdef MORE
    out[2] = __float2half(1e6f);
#endif
}
"""


class CppTree(Tree):
    """CUDA units with a shared header, a header that no unit includes, and a compilation database."""

    def __init__(self, folder):
        super().__init__(folder)
        self.more = False
        os.makedirs(os.path.join(folder, ".git"))  # a whole project
        for n in range(3):
            self.write(f"src/u{n}.cu", UNIT)
        self.write("include/total.cuh", HEADER)
        self.write("src/lonely.cuh", HEADER.replace("total", "lonely"))
        self.write("tool.py", "import torch\n\n\ndef lower(x):\n    return x.half() + 1e-8\n")
        os.makedirs(os.path.join(folder, "first"))
        self.database()

    def database(self):
        flags = ["-Ifirst", "-Iinclude"] + ["-DMORE"] * self.more
        self.write("compile_commands.json", json.dumps([
            {"directory": self.folder, "file": f"src/u{n}.cu",
             "arguments": ["nvcc", *flags, "-c", f"src/u{n}.cu"]} for n in range(3)]))

    def age(self):
        """Old directories are compared by their time, as in a working tree."""
        for at, _, _ in os.walk(self.folder):
            self.clock += 10
            os.utime(at, (self.clock, self.clock))

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            return f.read()

    def edit(self, rng, names):
        name = rng.choice(names)
        what = rng.choice(["lines", "lines", "remark", "facts", "touch", "shadow", "remove", "flags", "function",
                           "include", "break", "restore"])
        text = self.read(name) if os.path.exists(os.path.join(self.folder, name)) else ""
        lines = text.splitlines()
        shadow = os.path.join(self.folder, "first/total.cuh")
        if what == "lines":
            self.write(name, "\n".join([""] * rng.randrange(1, 9) + lines) + "\n")
        elif what == "remark":
            self.write(name, text.replace("x[i]", "x[i] /* as it was */", 1))
        elif what == "facts":
            self.write(name, text.replace("1e-9f", "1e-3f") if "1e-9f" in text else text.replace("1e-3f", "1e-9f"))
        elif what == "touch":
            self.write(name, text)
        elif what == "shadow":
            self.write("first/total.cuh", HEADER.replace("T acc", f"float first_{rng.randrange(99)} = 0; T acc"))
        elif what == "remove":
            if os.path.exists(shadow):
                os.remove(shadow)
        elif what == "flags":
            self.more = not self.more
            self.database()
        elif what == "function":
            self.write(name, text + f"\n__device__ __half added_{rng.randrange(9**6)}(__half x) "
                                    "{ return __hadd(x, __float2half(1e-9f)); }\n")
        elif what == "include":
            self.write("src/u0.cu", '#include "lonely.cuh"\n' + UNIT)
        elif what == "break":
            self.write(name, text + "\nvoid broken( {\n")
        else:
            self.write(name, HEADER if name == "include/total.cuh" else
                       HEADER.replace("total", "lonely") if name.endswith("cuh") else UNIT)
        self.age()
        return f"{name}: {what}"


def cpp_edits(binary, scratch, rng, edits):
    tree = CppTree(os.path.join(scratch, "cpp"))
    tree.age()
    names = ["src/u0.cu", "src/u1.cu", "include/total.cuh", "src/lonely.cuh"]
    found = lint(binary, tree.folder, "--no-cache")["findings"]
    files = {os.path.basename(f["file"]) for f in found}
    assert {"total.cuh", "u0.cu"} <= files, f"no test of anything: {files}"
    return edit_and_compare(binary, rng, tree, names, edits, os.path.join(scratch, "cpp-cache"))


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
            failed += calls_of_other_files(args.lint, scratch)
            failed += edits_of_data(args.lint, scratch)
            failed += lines_of_lambdas(args.lint, scratch)
            failed += cpp_edits(args.lint, scratch, random.Random(args.seed), args.edits // 6)
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
