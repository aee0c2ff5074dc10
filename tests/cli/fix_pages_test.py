"""Every fix that a rule offers, tried on the Python examples of its own page.

After `--fix --unsafe-fixes` the file parses, and findings with a fix are no longer reported.

    MP_LINT=build/bin/mp-lint fix_pages_test.py ROOT
"""
import json
import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```python( file=\S+)?\n(.*?)^```$", re.M | re.S)


def lint(folder, rule, *arguments):
    words = [os.path.abspath(os.environ["MP_LINT"]), "--isolated", "--no-cache", "--select", rule, "--output", "json",
             *arguments, "example.py"]
    done = subprocess.run(words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if done.returncode not in (0, 1):
        return None, done.stderr
    return json.loads(done.stdout)["findings"], done.stderr


def faults_of(rule, text, where):
    """(number of fixes tried, errors)"""
    with tempfile.TemporaryDirectory(prefix="mp-fix-page-") as folder:
        path = os.path.join(folder, "example.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        before, said = lint(folder, rule)
        if before is None:
            return 0, [f"{where}: {said}"]
        fixable = [f for f in before if f.get("edits")]
        if not fixable:
            return 0, []
        after, said = lint(folder, rule, "--fix", "--unsafe-fixes")
        faults = []
        if "left alone" in said or "conflicting" in said:
            faults.append(f"{where}: {said.strip()}")
        with open(path, encoding="utf-8") as f:
            fixed = f.read()
        try:
            compile(fixed, path, "exec")
        except SyntaxError as error:
            faults.append(f"{where}: does not parse after its fixes: {error}\n{fixed}")
        if after is None or len(after) > len(before) - len(fixable):
            faults.append(f"{where}: {len(fixable)} of {len(before)} have fixes, then {after and len(after)} are left\n"
                          f"{fixed}\n{said}")
        return len(fixable), faults


def main(root):
    tried, faults = 0, []
    pages = os.path.join(root, "testdata/lint")
    for name in sorted(os.listdir(pages)):
        with open(os.path.join(pages, name), encoding="utf-8") as f:
            page = f.read()
        for match in FENCE.finditer(page):
            if match[1]:
                continue  # one of several files
            n, wrong = faults_of(name[:-3], match[2], f"{name}:{page.count(chr(10), 0, match.start()) + 1}")
            tried += n
            faults += wrong
    print("\n".join(faults + [f"{tried} fixes tried, {len(faults)} faults"]))
    return 1 if faults or tried == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
