#!/usr/bin/env python3
"""Measures mp-lint on a tree of Python files against ruff on the same tree in the same run.

    script/bench lint-python DIR [--ruff RUFF] [--mp-lint BINARY] [--rounds 5]

DIR is copied, for one of its files is edited; a tree as large as the transformers wheel (2,860 files) is
meant: pip download --no-deps transformers, and unzip. Rows: ruff with every rule and with its default rules,
both without a cache; mp-lint with every rule, cold (an empty cache) as a whole project (with .git) and as a
folder, again over the unchanged tree, and after one file was edited. Figures: CPU time of the whole process
tree, wall time, memory of the largest process. Minimum over interleaved rounds; files are in the page cache.
Only ratios of one run mean anything on a shared machine. Never a test: nothing here fails on a number.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(command):
    """(CPU seconds, wall seconds, MB of the largest process), measured in a separate child process."""
    if not shutil.which(command[0]):
        sys.exit(f"{command[0]}: no such program; script/setup builds mp-lint, --mp-lint names another")
    read, write = os.pipe()
    start = time.monotonic()
    if os.fork() == 0:
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(write, f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as figures:
        cpu, memory = map(float, figures.read().split())
    os.wait()
    return cpu, time.monotonic() - start, memory


def installed_ruff():
    own = os.path.join(ROOT, "build/peers-venv/bin/ruff")
    return own if os.access(own, os.X_OK) else shutil.which("ruff") or ""


def python_files(tree):
    return sorted(os.path.join(at, name) for at, _, names in os.walk(tree) for name in names
                  if name.endswith(".py"))


class Bench:
    def __init__(self, tree, lint, ruff, cache):
        self.tree, self.cache, self.files = tree, cache, python_files(tree)
        # Old enough for their times to be trusted, as in a working tree.
        for path in self.files:
            os.utime(path, (time.time() - 1000,) * 2)
        self.lint = [lint, "--isolated", "--exit-zero", "--select", "ALL", "--cache-dir", cache, tree]
        self.ruff = [ruff, "check", "--isolated", "--no-cache", "--exit-zero", "--quiet"]
        self.edited = max((p for p in self.files if "/models/" in p), key=os.path.getsize,
                          default=self.files[0])
        self.edits = 0

    def empty(self):
        shutil.rmtree(self.cache, ignore_errors=True)

    def become_project(self):
        self.empty()
        os.makedirs(os.path.join(self.tree, ".git"))

    def become_folder(self):
        self.empty()
        os.rmdir(os.path.join(self.tree, ".git"))

    def edit(self):
        self.edits += 1
        with open(self.edited, "a") as out:
            out.write(f"\n# edit {self.edits}\n")  # a constant would be a fact

    def edit_facts(self):
        self.edits += 1
        with open(self.edited, "a") as out:
            out.write(f"\n\ndef _edit_{self.edits}(x):\n    return torch.softmax(x, -1)\n")

    def variants(self):
        if self.ruff[0]:
            yield "ruff, every rule", lambda: None, [*self.ruff, "--select", "ALL", self.tree]
            yield "ruff, default rules", lambda: None, [*self.ruff, self.tree]
        yield "mp-lint, cold, as a whole project", self.become_project, self.lint
        yield "mp-lint, cold, every rule", self.become_folder, self.lint
        yield "mp-lint, nothing changed", lambda: run(self.lint), self.lint
        yield "mp-lint, one file edited", self.edit, self.lint
        yield "mp-lint, a function added", self.edit_facts, self.lint


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree")
    parser.add_argument("--ruff", default=installed_ruff())
    parser.add_argument("--mp-lint", default=os.path.join(ROOT, "build/release/bin/mp-lint"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tree = shutil.copytree(options.tree, os.path.join(scratch, "tree"))
        bench = Bench(tree, options.mp_lint, options.ruff, os.path.join(scratch, "cache"))
        best = {}
        for _ in range(options.rounds):
            for name, prepare, command in bench.variants():
                prepare()
                figures = run(command)
                best[name] = tuple(map(min, best.get(name, figures), figures))
        size = sum(os.path.getsize(p) for p in bench.files) / 1e6
        print(f"{len(bench.files)} Python files, {size:.1f} MB, minimum of {options.rounds} rounds\n")
        print("| | CPU | wall | memory | files/s of CPU |\n|---|---|---|---|---|")
        for name, (cpu, wall, memory) in best.items():
            print(f"| {name} | {cpu:.2f} s | {wall:.2f} s | {memory:.0f} MB | {len(bench.files) / cpu:,.0f} |")
    if not options.ruff:
        print("ruff is not installed: name it with --ruff", file=sys.stderr)


if __name__ == "__main__":
    main()
