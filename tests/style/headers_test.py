"""Every header compiles alone.

A header that some source includes first is proven by the build. The others are compiled here, one process each, with
ccache where there is one.
Usage: headers_test.py ROOT BUILD; BUILD holds compile_commands.json. First proves on a planted fault that it can fail.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
# Text that others include in the middle of a namespace, and what only compiles against one torch or CUPTI.
FRAGMENTS = re.compile(r"-inl\.hpp$|/fields\.hpp$|^instrument/(torch|cupti)/")
DATA = ("analyzer/stubs/", "testdata/")


def included_first(root, sources):
    """Headers that are the first include of a source, by path from the root."""
    first = set()
    for source in sources:
        with open(os.path.join(root, source), encoding="utf-8") as f:
            found = INCLUDE.search(f.read())
        if found:
            first |= {found[1], os.path.normpath(os.path.join(os.path.dirname(source), found[1]))}
    return first


def include_flags(build):
    """The include directories of all commands of the build, once each. An adapter's torch is not among them."""
    flags = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for command in json.load(f):
            words = shlex.split(command["command"])
            flags |= {("-I", w[2:]): None for w in words if w.startswith("-I")}
            flags |= {("-isystem", words[i + 1]): None for i, w in enumerate(words) if w == "-isystem"}
    return [word for pair in flags for word in pair]


def fault_of(header, root, flags):
    ccache = ["ccache"] if shutil.which("ccache") else []
    with tempfile.TemporaryDirectory() as made:
        run = subprocess.run([*ccache, "clang++-19", "-std=c++20", "-c", "-o", os.path.join(made, "header.o"),
                              "-Wno-pragma-once-outside-header", "-x", "c++", *flags, header], capture_output=True,
                             text=True, cwd=root, env={**os.environ, "CCACHE_BASEDIR": root})
    return f"{header} does not compile alone:\n{run.stderr}" if run.returncode else ""


def main(root, build):
    flags = include_flags(build)
    with tempfile.TemporaryDirectory() as planted:
        path = os.path.join(planted, "planted.hpp")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#pragma once\ninline std::string text() { return {}; }\n")
        assert fault_of(path, root, flags), "a header without its include passed"

    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True,
                            text=True, check=True)
    files = [f for f in listed.stdout.split() if not f.startswith(DATA) and os.path.exists(os.path.join(root, f))]
    first = included_first(root, [f for f in files if f.endswith((".cpp", ".c", ".cu"))])
    rest = [f for f in files if f.endswith((".hpp", ".h")) and f not in first and not FRAGMENTS.search(f)]
    assert rest and first, "no headers found"
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        faults = [f for f in pool.map(lambda h: fault_of(h, root, flags), rest) if f]
    print("\n".join(faults) or f"{len(rest)} headers compile alone, the first include of a source proves the others")
    return 1 if faults else 0


sys.exit(main(*sys.argv[1:]))
