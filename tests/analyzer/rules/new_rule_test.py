"""script/new-rule in a copy of the tree: the files that it writes compile, and it rejects invalid input.

Usage: new_rule_test.py REPOSITORY COMPILER
"""
import os
import shutil
import subprocess
import sys
import tempfile

root, compiler = sys.argv[1], sys.argv[2]
NEEDED = ["analyzer/rules", "analyzer/analyses", "analyzer/facts", "analyzer/region", "kernels/base",
          "kernels/numerics", "tests/analyzer/rules", "testdata/lint", "script/new-rule", "script/gen-rule-docs"]


def copy_tree(to):
    for path in NEEDED:
        source, target = os.path.join(root, path), os.path.join(to, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)


def run(tree, *arguments):
    return subprocess.run([sys.executable, os.path.join(tree, "script", arguments[0]), *arguments[1:]],
                          capture_output=True, text=True)


def snapshot(tree):
    return {os.path.join(d, f): os.stat(os.path.join(d, f)).st_mtime_ns for d, _, fs in os.walk(tree) for f in fs}


def read(tree, path):
    with open(os.path.join(tree, path), encoding="utf-8") as f:
        return f.read()


def check_refusals(tree):
    before = snapshot(tree)
    for id, name, why in [
        ("MP401", "some-thing", "taken"), ("MP190", "half-accumulator", "taken"),
        ("MP1", "some-thing", "no id"), ("MP917", "some-thing", "no id"), ("XX117", "some-thing", "no id"),
        ("MP190", "SomeThing", "no name"), ("MP190", "thing", "no name"), ("MP190", "../../thing-a", "no name"),
    ]:
        done = run(tree, "new-rule", id, name)
        assert done.returncode != 0 and why in done.stderr, f"{id} {name}: {done.returncode} {done.stderr}"
    assert run(tree, "new-rule", "MP190").returncode != 0
    assert snapshot(tree) == before, "a refusal changed the tree"


def check_new_rule(tree):
    before = set(snapshot(tree))
    done = run(tree, "new-rule", "MP190", "quiet-rounding")
    assert done.returncode == 0, done.stderr
    written = ["analyzer/rules/quiet_rounding.cpp", "tests/analyzer/rules/quiet_rounding_test.cpp",
               "testdata/lint/MP190.md"]
    assert set(snapshot(tree)) - before == {os.path.join(tree, path) for path in written}, done.stdout
    assert "extern constinit const Rule kQuietRounding{.id" in read(tree, written[0])
    for path in written[:2]:
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{tree}",
                               os.path.join(tree, path)], capture_output=True, text=True)
        assert done.returncode == 0, f"{path}:\n{done.stderr}"
    assert run(tree, "new-rule", "MP190", "another-name").returncode != 0, "an id was given twice"
    assert run(tree, "gen-rule-docs").returncode == 0
    assert "quiet-rounding" in read(tree, "docs/rules/README.md")
    assert run(tree, "gen-rule-docs", "--check").returncode == 0


with tempfile.TemporaryDirectory() as folder:
    copy_tree(folder)
    check_refusals(folder)
    check_new_rule(folder)
