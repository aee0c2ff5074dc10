"""Files stay readable: no source above 600 lines, no line above 120 columns, no tabs in C++.

Also nothing unfinished by its own words, no path of one machine, no Python that Debian's python3 cannot parse, and no
source of other projects in the sheets of draws.
"""
import ast
import os
import re
import subprocess
import sys

root = sys.argv[1]
try:
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    files = listed.split()
except (OSError, subprocess.CalledProcessError):
    files = [os.path.relpath(os.path.join(d, f), root) for d, _, fs in os.walk(root) for f in fs
             if "/build" not in d and "/.git" not in d and "/.venv" not in d]

CODE = (".cpp", ".hpp", ".cu", ".cuh", ".py", ".cmake")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#)")
MACHINE = re.compile(r"(?<![A-Za-z.$}])/(work|farm|root|home)/[A-Za-z]")
PYTHON = re.compile(r"#!.*python")
EXCERPT = re.compile(r"^# +\d+( |$)", re.MULTILINE)  # a numbered line of the source that was judged
faults = []
for path in files:
    if path.startswith("testdata/corpus/draws/"):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            if EXCERPT.search(f.read()):
                faults.append(f"{path}: quotes the judged sources; delete the lines that begin with # and a number")
    if path.startswith(("testdata/", "tests/style/")) or not os.path.isfile(os.path.join(root, path)):
        continue
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        text = f.read()
    is_python = path.endswith(".py") or PYTHON.match(text)
    if not path.endswith(CODE) and not is_python:
        continue
    if is_python:
        try:
            ast.parse(text)
        except SyntaxError as error:
            faults.append(f"{path}:{error.lineno}: {error.msg}")
    lines = text.split("\n")
    if len(lines) > 601:  # the last one is empty
        faults.append(f"{path}: {len(lines)} lines; split it (600)")
    for number, line in enumerate(lines, 1):
        if len(line) > 120:
            faults.append(f"{path}:{number}: {len(line)} columns (120)")
        if "\t" in line and path.endswith((".cpp", ".hpp")) and "R\"" not in line:
            faults.append(f"{path}:{number}: tab")
        if UNFINISHED.search(line):
            faults.append(f"{path}:{number}: unfinished by its own words")
        if MACHINE.search(line):
            faults.append(f"{path}:{number}: a path of one machine")
print("\n".join(faults))
sys.exit(1 if faults else 0)
