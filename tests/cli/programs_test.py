"""The planted training tree: every mark is found on its line, nothing else is said, the twin is silent.

Usage: programs_test.py MP_LINT REPOSITORY
"""
import json
import os
import re
import subprocess
import sys

lint, root = sys.argv[1], sys.argv[2]
tree = os.path.join(root, "testdata", "programs", "trainer")
MARK = re.compile(r"// plant: (MP\d+)")


def findings(folder, *options):
    done = subprocess.run([lint, "--no-cache", "--isolated", "--cuda", "stubs", "--output", "json", *options, "."],
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


def main():
    planted = marks("bad")
    said = {(os.path.basename(f["file"]), f["line"], f["rule"]) for f in findings("bad", "--select", "ALL")
            if f["severity"] != "note" or f["rule"] == "MP602"}
    good = findings("good")
    for miss in sorted(planted - said):
        print("not found:  {}:{} {}".format(*miss))
    for extra in sorted(said - planted):
        print("unexpected: {}:{} {}".format(*extra))
    for f in good:
        print(f"good twin:  {f['file']}:{f['line']}: {f['severity']}: {f['message']} [{f['rule']}]")
    assert len({rule for _, _, rule in planted}) == 17, "a rule has no planted defect"
    return 1 if planted != said or good else 0


sys.exit(main())
