"""The planted training programs: every mark is found on its line, there is no other finding, and none in the twin.

testdata/programs/trainer (C++ and CUDA) is one program; each entry of testdata/programs/lint_python is one.

Usage: programs_test.py MP_LINT REPOSITORY
"""
import json
import os
import re
import subprocess
import sys

lint, root = sys.argv[1], sys.argv[2]
tree = os.path.join(root, "testdata", "programs", "trainer")
python = os.path.join(root, "testdata", "programs", "lint_python")
MARK = re.compile(r"// plant: (MP\d+)")
EXPECT = re.compile(r"# expect: (MP\d+) (error|warning|note)")


def findings(folder, *options):
    # Our own headers of torch, as for CUDA: parsing a libtorch takes most of a minute and makes no
    # difference here. The macros that are undefined again are those of a torch extension build, which this
    # tree is not.
    flags = ["-I" + os.path.join(root, "analyzer", "stubs", "torch"), "-U__CUDA_NO_HALF_OPERATORS__",
             "-U__CUDA_NO_HALF_CONVERSIONS__", "-U__CUDA_NO_HALF2_OPERATORS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__"]
    done = subprocess.run([lint, "--no-cache", "--isolated", "--cuda", "stubs", "--output", "json", *options, ".",
                           "--", *flags],
                          cwd=os.path.join(tree, folder), capture_output=True, text=True)
    assert done.returncode in (0, 1), f"{folder}: exit {done.returncode}\n{done.stderr}"
    report = json.loads(done.stdout)
    partial = [u["path"] for u in report["units"] if u["state"] != "ok"]
    assert not partial, f"{folder}: not parsed cleanly: {partial}"
    return report["findings"]


def marks(folder):
    found = set()
    for name in sorted(os.listdir(os.path.join(tree, folder))):
        with open(os.path.join(tree, folder, name), encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                found |= {(name, number, rule) for rule in MARK.findall(line)}
    return found


def python_findings(folder, program):
    """{(file, line, rule, severity)} of one program, notes and all."""
    done = subprocess.run([lint, "--no-cache", "--isolated", "--select", "ALL", "--output", "json", program],
                          cwd=os.path.join(python, folder), capture_output=True, text=True)
    assert done.returncode in (0, 1), f"{folder}/{program}: exit {done.returncode}\n{done.stderr}"
    report = json.loads(done.stdout)
    partial = [u["path"] for u in report["units"] if u["state"] != "ok"]
    assert not partial, f"{folder}/{program}: not parsed cleanly: {partial}"
    return {(os.path.normpath(f["file"]), f["line"], f["rule"], f["severity"]) for f in report["findings"]}


def python_marks(folder, program):
    top = os.path.join(python, folder)
    paths = [os.path.join(d, n) for d, _, names in os.walk(os.path.join(top, program)) for n in names]
    found = set()
    for path in paths or [os.path.join(top, program)]:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                found |= {(os.path.relpath(path, top), number, *mark) for mark in EXPECT.findall(line)}
    return found


def check_python():
    """Problems of all Python programs, as lines."""
    programs = sorted(os.listdir(os.path.join(python, "bad")))
    assert programs == sorted(os.listdir(os.path.join(python, "good"))), "a program has no twin"
    problems = []
    for program in programs:
        planted, said = python_marks("bad", program), python_findings("bad", program)
        assert planted, f"bad/{program}: nothing is marked"
        problems += ["not found:  {}:{} {} {}".format(*miss) for miss in sorted(planted - said)]
        problems += ["unexpected: bad/{}:{} {} {}".format(*extra) for extra in sorted(said - planted)
                     if extra[3] != "note"]
        problems += ["good twin:  good/{}:{} {} {}".format(*extra)
                     for extra in sorted(python_findings("good", program)) if extra[3] != "note"]
    return problems


def main():
    planted = marks("bad")
    said = {(os.path.basename(f["file"]), f["line"], f["rule"]) for f in findings("bad", "--select", "ALL")
            if f["severity"] != "note" or f["rule"] in ("MP101", "MP107", "MP602")}
    good = findings("good")
    for miss in sorted(planted - said):
        print("not found:  {}:{} {}".format(*miss))
    for extra in sorted(said - planted):
        print("unexpected: {}:{} {}".format(*extra))
    for f in good:
        print(f"good twin:  {f['file']}:{f['line']}: {f['severity']}: {f['message']} [{f['rule']}]")
    assert len({rule for _, _, rule in planted}) == 18, "a rule has no planted defect"
    problems = check_python()
    print("\n".join(problems))
    return 1 if planted != said or good or problems else 0


sys.exit(main())
