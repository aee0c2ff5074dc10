"""mp-lint compared with other tools, on testdata/peers: 8 of 8 and 6 of 6 in CUDA, 8 of 8 in Python, and no findings
in the clean twins.

Usage: peers_test.py MP_LINT REPOSITORY. Prints the table; fails when mp-lint misses a marked line or reports an
unmarked one. The other tools are run if they are installed, and never decide the result: a tool "finds" a defect when
any of its messages on the marked line mentions precision.
"""
import json
import os
import re
import shutil
import subprocess
import sys

lint, root = sys.argv[1], sys.argv[2]
folder = os.path.join(root, "testdata", "peers")
stubs = os.path.join(root, "analyzer", "stubs", "cuda")
MARK = re.compile(r"(?://|#) defect (\w+): (MP\d+)")
ABOUT = re.compile(r"narrow|precision|overflow|underflow|conver|lose|accumul|half|bfloat|float|infin", re.I)
# `q / n` with an int n is not the defect of any marked line.
INT_TO_FLOAT = re.compile(r"'int' to 'float'|from 'int'|narrowing conversion from 'int'")
CLANG = ["-x", "cuda", "--cuda-host-only", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib",
         "-isystem", stubs, "-include", "mp_cuda_stub.h", "-std=c++20"]


def marks(path):
    """{line: (defect, rule)} of a file."""
    with open(path, encoding="utf-8") as f:
        return {n: m.groups() for n, line in enumerate(f, 1) if (m := MARK.search(line))}


def text_of(command, where=folder):
    done = subprocess.run(command, capture_output=True, text=True, cwd=where)
    return done.stdout + done.stderr


def lines_about(text, name):
    """Lines of `name` on which a tool reports something about precision."""
    hits = set()
    for found in re.finditer(rf"{re.escape(name)}:(\d+):.*", text):
        message = found.group(0).split(name, 1)[1]
        if ABOUT.search(message) and not INT_TO_FLOAT.search(message):
            hits.add(int(found.group(1)))
    return hits


PEERS = {
    "clang++-19 -Weverything": lambda f: ["clang++-19", "-fsyntax-only", "-Weverything", *CLANG, f],
    "clang-tidy-19": lambda f: ["clang-tidy-19", "--quiet",
                                "-checks=-*,bugprone-*,cppcoreguidelines-narrowing*,cert-*,clang-analyzer-*",
                                f, "--", *CLANG],
    "g++ -Wconversion": lambda f: ["g++", "-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion",
                                   "-Wfloat-conversion", "-isystem", stubs, "-include", "mp_cuda_stub.h", f],
    "cppcheck": lambda f: ["cppcheck", "--enable=all", "--inconclusive", "--language=c++", f],
}


def installed(name):
    """Where a Python tool is: on the path, or in the environment of the peers' measurement."""
    here = os.path.join(root, "build", "peers-venv", "bin", name)
    return here if os.path.exists(here) else shutil.which(name)


PYTHON_PEERS = {
    "ruff": ["check", "--isolated", "--no-cache", "--select", "ALL", "--preview", "--output-format", "concise"],
    "torchfix": ["--select", "ALL"],
    "pylint": ["--enable=all", "--disable=import-error", "--score=n"],
}


def check_python():
    """The same for Python. Each file is a separate program. Prints the table, returns the errors."""
    where = os.path.join(folder, "python")
    files = sorted(n for n in os.listdir(where) if n.endswith(".py"))
    peers = {name: text_of([tool, *options, *files], where) for name, options in PYTHON_PEERS.items()
             if (tool := installed(name))}
    print("\n| defect | " + " | ".join(["mp-lint", *peers]) + " |\n" + "|---" * (len(peers) + 2) + "|")
    problems, planted = [], 0
    for name in files:
        done = subprocess.run([lint, "--no-cache", "--isolated", "--select", "ALL", "--output", "json", name],
                              cwd=where, capture_output=True, text=True)
        assert done.returncode in (0, 1), f"mp-lint {name}: exit {done.returncode}\n{done.stderr}"
        found = {}
        for f in json.loads(done.stdout)["findings"]:
            found.setdefault(f["line"], set()).add((f["rule"], f["severity"]))
        marked = marks(os.path.join(where, name))
        for line, (defect, rule) in marked.items():
            planted += 1
            hit = rule in {r for r, _ in found.get(line, ())}
            cells = ["found" if hit else "-"]
            cells += ["found" if line in lines_about(text, name) else "-" for text in peers.values()]
            print(f"| {defect} {rule} {name}:{line} | " + " | ".join(cells) + " |")
            if not hit:
                problems.append(f"{name}:{line}: {rule} not found")
        problems += [f"{name}:{line}: unexpected {sorted(said)}" for line, said in sorted(found.items())
                     if line not in marked and any(severity != "note" for _, severity in said)]
    assert planted == 8, f"{planted} Python defects are marked, not 8"
    return problems


def main():
    files = sorted(n for n in os.listdir(folder) if n.endswith(".cu"))
    done = subprocess.run([lint, "--no-cache", "--isolated", "--cuda", "stubs", "--select", "ALL",
                           "--output", "json", *files], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1, f"mp-lint: exit {done.returncode}\n{done.stderr}"
    found = {}
    for f in json.loads(done.stdout)["findings"]:
        found.setdefault((os.path.basename(f["file"]), f["line"]), set()).add((f["rule"], f["severity"]))

    peers = {name: make for name, make in PEERS.items() if shutil.which(make("x")[0])}
    said = {p: {n: lines_about(text_of(make(n)), n) for n in files} for p, make in peers.items()}
    print("| defect | " + " | ".join(["mp-lint", *peers]) + " |\n" + "|---" * (len(peers) + 2) + "|")
    missed, planted = [], set()
    for name in files:
        for line, (defect, rule) in marks(os.path.join(folder, name)).items():
            planted.add((name, line))
            rules = {r for r, _ in found.get((name, line), ())}
            cells = ["found" if rule in rules else "-"]
            cells += ["found" if line in said[p][name] else "-" for p in peers]
            print(f"| {defect} {rule} {name}:{line} | " + " | ".join(cells) + " |")
            if rule not in rules:
                missed.append(f"{name}:{line}: {rule} not found")
    loud = [f"{n}:{line}: unexpected {sorted(r)}" for (n, line), r in sorted(found.items())
            if (n, line) not in planted]
    missed += check_python()
    print("\n".join(missed + loud))
    assert len(planted) == 14, f"{len(planted)} defects are marked, not 8 + 6"
    return 1 if missed or loud else 0


sys.exit(main())
