"""The fences between rooms: who may include whom, and which outside headers stay in which room.

Run with the repository root as argument. First proves on planted faults that it can fail.
"""
import os
import re
import sys

SOURCES = (".hpp", ".cpp", ".cuh", ".cu", ".h", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)

# Room -> rooms it may include from. The longest matching prefix on either side decides.
ALLOWED = {
    "kernels/numerics": {"kernels/numerics"},
    "kernels": {"kernels"},
    "analyzer": {"analyzer", "kernels/numerics"},
    "runtime": {"runtime", "kernels"},
    "instrument": {"instrument", "runtime/trace", "kernels"},
}

# Inside the analyzer: facts know nobody, rules never see clang or files, reports never analyse.
ANALYZER = {
    "analyzer/facts": {"analyzer/facts"},
    "analyzer/clang": {"analyzer/clang", "analyzer/facts"},
    "analyzer/python": {"analyzer/python", "analyzer/facts"},
    "analyzer/region": {"analyzer/region", "analyzer/facts"},
    "analyzer/rules": {"analyzer/rules", "analyzer/region", "analyzer/facts"},
    "analyzer/config": {"analyzer/config", "analyzer/region", "analyzer/rules", "analyzer/facts"},
    "analyzer/cache": {"analyzer/cache", "analyzer/facts"},
    "analyzer/report": {"analyzer/report", "analyzer/rules", "analyzer/region", "analyzer/facts"},
}

# Outside header -> the only places that may include it.
FENCED = [
    (re.compile(r"^(clang|llvm)/"), ("analyzer/clang",)),
    (re.compile(r"^tree_sitter/"), ("analyzer/python",)),
    (re.compile(r"^(torch|ATen|c10)/"), ("instrument/torch",)),
    (re.compile(r"^cupti"), ("instrument/cupti",)),
    (re.compile(r"^nccl"), ("instrument/nccl",)),
    (re.compile(r"^(cuda|cublas|device_launch)"),
     ("kernels/cuda", "instrument/cupti", "instrument/cublas", "instrument/nccl", "instrument/nvtx")),
    (re.compile(r"^boost/program_options"), ("analyzer/main.cpp", "runtime/main.cpp")),
]

ROOMS = ("kernels", "analyzer", "runtime", "instrument")
DATA = ("analyzer/stubs",)  # headers we ship, not code we build
TOP = {"CMakeLists.txt", "analyzer", "instrument", "runtime", "kernels", "testdata", "tests", "README.md",
       "docs", "script", "cmake", "CMakePresets.json", "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md"}
STD_ONLY = "kernels/numerics"


def longest(table, path):
    hits = [room for room in table if path == room or path.startswith(room + "/")]
    return max(hits, key=len) if hits else None


def faults_of(path, text):
    """Every broken fence of one file, as messages."""
    faults = []
    for header in INCLUDE.findall(text):
        for pattern, homes in FENCED:
            if pattern.match(header) and not any(path == h or path.startswith(h + "/") for h in homes):
                faults.append(f"{path}: {header} may only be included in {', '.join(homes)}")
        if header.split("/")[0] not in ROOMS:
            if path.startswith(STD_ONLY) and "/" in header:
                faults.append(f"{path}: {STD_ONLY} is std only, not {header}")
            continue
        for table in (ALLOWED, ANALYZER):
            room = longest(table, path)
            if room and not any(header.startswith(r + "/") for r in table[room]):
                if table is ANALYZER and not header.startswith("analyzer/"):
                    continue
                faults.append(f"{path}: {room} may not include {header}")
    return faults


def tree_faults(root):
    faults, seen = [], 0
    for room in ROOMS:
        for folder, dirs, files in os.walk(os.path.join(root, room)):
            relative = os.path.relpath(folder, root)
            if any(relative.startswith(d) for d in DATA):
                continue
            for name in files:
                if name.endswith(SOURCES):
                    path = os.path.join(relative, name)
                    with open(os.path.join(root, path), encoding="utf-8") as f:
                        faults += faults_of(path, f.read())
                    seen += 1
    for name in os.listdir(root):
        if not name.startswith(".") and name not in TOP | {"build", "shared"}:
            faults.append(f"{name}: not a room of this house")
    assert seen > 20, "no sources found: is the argument the repository root?"
    return faults


def self_check():
    must_fail = [
        ("analyzer/rules/a.cpp", '#include "clang/AST/Decl.h"'),
        ("analyzer/rules/a.cpp", '#include "analyzer/clang/types.hpp"'),
        ("kernels/numerics/a.hpp", '#include "analyzer/facts/model.hpp"'),
        ("kernels/numerics/a.hpp", "#include <nlohmann/json.hpp>"),
        ("runtime/trace/a.cpp", '#include "instrument/torch/x.hpp"'),
        ("runtime/trace/a.cpp", '#include "analyzer/facts/model.hpp"'),
        ("instrument/torch/a.cpp", '#include "runtime/report/x.hpp"'),
        ("analyzer/driver/a.cpp", "#include <boost/program_options.hpp>"),
        ("runtime/launch/a.cpp", "#include <cupti.h>"),
    ]
    for path, text in must_fail:
        assert faults_of(path, text), f"a planted fault was not seen: {path}: {text}"
    for path, text in [("analyzer/clang/a.cpp", '#include "clang/AST/Decl.h"'),
                       ("analyzer/driver/a.cpp", '#include "analyzer/clang/extract.hpp"'),
                       ("analyzer/main.cpp", "#include <boost/program_options.hpp>"),
                       ("instrument/torch/a.cpp", "#include <torch/torch.h>")]:
        assert not faults_of(path, text), f"a clean include was refused: {path}: {text}"


if __name__ == "__main__":
    self_check()
    found = tree_faults(sys.argv[1])
    print("\n".join(found))
    sys.exit(1 if found else 0)
