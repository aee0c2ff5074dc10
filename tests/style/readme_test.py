"""The README's two commands are what CI runs and what exists: they are read from the README."""
import os
import re
import sys

root = sys.argv[1]
readme = open(os.path.join(root, "README.md"), encoding="utf-8").read()


def command_after(heading):
    """First line of the first code block after the heading."""
    match = re.search(rf"^## {heading}$.*?^```[a-z]*\n(.+?)\n", readme, re.M | re.S)
    assert match, f"README.md has no code block under '## {heading}'"
    return match.group(1).split("#")[0].strip()


for heading in ("Try it", "Test it"):
    command = command_after(heading)
    path = os.path.join(root, command.split()[0])
    assert os.access(path, os.X_OK), f"README.md: '{command}' is not an executable file of the repository"

ci = open(os.path.join(root, ".ci", "run"), encoding="utf-8").read()
assert re.search(rf"^exec {re.escape(command_after('Test it'))}$", ci, re.M), \
    ".ci/run does not run the README's test command"

# Every `mp-lint ...` line of the README uses options that main.cpp knows.
known = open(os.path.join(root, "analyzer", "main.cpp"), encoding="utf-8").read()
for line in re.findall(r"^(?:\$ )?mp-lint .*$", readme, re.M):
    for option in re.findall(r"\s--([a-z][a-z-]+)", line):
        assert f'"{option}' in known, f"README.md uses --{option}, which analyzer/main.cpp does not name"
