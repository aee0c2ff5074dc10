"""Public commits that repair a numeric fault: is it found before, and is mp-lint silent after?

The lists are testdata/corpus/fixes.toml, fixes2.toml and so on. A pair is found when a finding of the parent stands
within 3 lines of a changed place, and silent when the fix has no finding of that rule near the places that it changed.
It is "named" when the finding stands elsewhere and one of the places that it prints (the cast, the caller) is near such
a place.
"""
import json
import os
import re
import subprocess
import tempfile

from lint_corpus_draw import PYTHON_ENDS, read_toml, own_headers

SLACK = 3
CPP_ENDS = (".cu", ".cpp", ".cc", ".cxx")
SOURCES = PYTHON_ENDS + CPP_ENDS + (".cuh", ".h", ".hpp", ".json", ".yaml", ".toml")
LARGEST = 2_000_000
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def git(folder, *words, **more):
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, check=True, **more).stdout


def export(folder, commit, into):
    """Writes the sources of a commit. Reads blobs one by one, so that a partial clone will do."""
    rows = [row.split(b"\t", 1) for row in git(folder, "ls-tree", "-r", "-z", "-l", commit).split(b"\0") if row]
    wanted = [(meta.split(), os.fsdecode(name)) for meta, name in rows]
    wanted = [(meta[2], name) for meta, name in wanted if meta[1] == b"blob" and meta[0] != b"120000"
              and name.endswith(SOURCES) and meta[3].isdigit() and int(meta[3]) < LARGEST]
    packed = git(folder, "cat-file", "--batch", input=b"\n".join(oid for oid, _ in wanted) + b"\n")
    at = 0
    for _, name in wanted:
        end = packed.index(b"\n", at)
        head = packed[at:end].split()
        at = end + 1
        if head[-1] == b"missing":
            continue
        path = os.path.join(into, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(packed[at:at + int(head[2])])
        at += int(head[2]) + 1


def changed(folder, parent, fix):
    """{file: ([(first, last) in the parent], [(first, last) in the fix])} of the source files."""
    text = git(folder, "diff", "-U0", "--no-renames", parent, fix).decode(errors="replace")
    out, file = {}, None
    for line in text.splitlines():
        if line.startswith("diff --git "):
            file = line.split(" b/", 1)[1]
        found = HUNK.match(line)
        if found and file.endswith(PYTHON_ENDS + CPP_ENDS + (".cuh", ".h", ".hpp")):
            a, n, b, m = (int(x) if x else 1 for x in found.groups())
            before, after = out.setdefault(file, ([], []))
            before.append((a, a + max(n - 1, 0)))
            after.append((b, b + max(m - 1, 0)))
    return out


def findings(args, folder, files):
    """Errors and warnings in the files, with the whole tree as context."""
    runs = []
    if any(f.endswith(PYTHON_ENDS) for f in files):
        runs.append((["."] if not files_with(folder, CPP_ENDS) else python_of(folder), []))
    cpp = [f for f in files if f.endswith(CPP_ENDS) and os.path.isfile(os.path.join(folder, f))]
    if cpp:
        runs.append((["--cuda", args.cuda, "--torch-headers", args.torch, *cpp], ["--", *own_headers(folder)]))
    out = []
    for units, more in runs:
        done = subprocess.run([args.mp_lint, "--no-cache", "--isolated", "--output", "json", *units, *more],
                              cwd=folder, capture_output=True, text=True, check=False)
        if done.stdout.lstrip().startswith("{"):
            out += [f for f in json.loads(done.stdout)["findings"] if f["severity"] != "note"]
    return out


def files_with(folder, ends):
    return [os.path.relpath(os.path.join(top, name), folder)
            for top, _, names in os.walk(folder) for name in sorted(names) if name.endswith(ends)]


def python_of(folder):
    return files_with(folder, PYTHON_ENDS)


def near(place, touched, side):
    ranges = touched.get(place.get("file"), ([], []))[side]
    return any(first - SLACK <= place["line"] <= last + SLACK for first, last in ranges)


def judge(args, fix):
    folder = os.path.join(args.sources, fix["repository"])
    if not os.path.isdir(folder):
        return "absent", []
    touched = changed(folder, fix["parent"], fix["fix"])
    reports = []
    for commit, side in ((fix["parent"], 0), (fix["fix"], 1)):
        with tempfile.TemporaryDirectory() as tree:
            export(folder, commit, tree)
            for f in (all_of := findings(args, tree, touched)):
                for note in f["notes"]:   # of a run on ".": absolute
                    note["file"] = os.path.relpath(os.path.join(tree, note.get("file", "")), tree)
            reports.append(([f for f in all_of if near(f, touched, side)],
                            [f for f in all_of if any(near(note, touched, side) for note in f["notes"])]))
    (before, named_before), (after, named_after) = reports
    left = {f["rule"] for f in after + named_after}
    for result, candidates in (("found", before), ("named", named_before)):
        if found := [f for f in candidates if f["rule"] not in left]:
            return result, found
    return ("not silent", before + named_before) if before or named_before else ("missed", [])


def fixes(args, root):
    rows = read_toml(os.path.join(root, "testdata/corpus", args.fixes))["fix"]
    counts = {}
    print("| repository | fix | result | findings before | subject |\n|---|---|---|---|---|")
    for fix in rows:
        result, found = judge(args, fix)
        counts[result] = counts.get(result, 0) + 1
        places = ", ".join(sorted({f"{f['rule']} {f['file']}:{f['line']}" for f in found}))
        print(f"| {fix['repository']} | {fix['fix'][:10]} | {result} | {places} | {fix['subject']} |", flush=True)
    print("\n" + ", ".join(f"{n} {result}" for result, n in sorted(counts.items())) + f", of {len(rows)}")
