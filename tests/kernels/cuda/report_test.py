"""What ptxas said about the CUDA kernels: no register is spilled and no stack is used, for any kernel on any device.

    report_test.py REPORT GENERATION...

REPORT is what `nvcc -Xptxas -v` printed. First proves on a planted report that it can fail.
"""
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)\w?'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
MOST_REGISTERS = 128  # 256 threads of a block, two blocks at once


def faults_of(report, generations):
    """What is wrong with a report, as messages."""
    faults, kernels, current = [], {g: set() for g in generations}, None
    for line in report.splitlines():
        if entry := ENTRY.search(line):
            current = f"{entry[1]} for sm_{entry[2]}"
            kernels.setdefault(entry[2], set()).add(entry[1])
        elif (stack := STACK.search(line)) and any(int(n) for n in stack.groups()):
            faults.append(f"{current}: {stack[0]}")
        elif (used := USED.search(line)) and int(used[1]) > MOST_REGISTERS:
            faults.append(f"{current}: {used[1]} registers, more than {MOST_REGISTERS}")
    names = set().union(*kernels.values())
    if not names:
        faults.append("the report names no kernel")
    for generation, found in kernels.items():
        faults += [f"{name} is not compiled for sm_{generation}" for name in sorted(names - found)]
    return faults


def planted(stack="0", registers="40", generation="90"):
    return (f"ptxas info    : Compiling entry function 'k' for 'sm_{generation}'\n"
            f"    {stack} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            f"ptxas info    : Used {registers} registers, used 1 barriers\n")


assert not faults_of(planted(), ["90"])
assert faults_of(planted(stack="8"), ["90"])
assert faults_of(planted(registers="200"), ["90"])
assert faults_of(planted(generation="80"), ["80", "90"])
assert faults_of("", ["90"])

with open(sys.argv[1], encoding="utf-8") as f:
    found = faults_of(f.read(), sys.argv[2:])
print("\n".join(found))
sys.exit(1 if found else 0)
