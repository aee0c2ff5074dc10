"""Reports of mp-lint on programs that nobody here has read, drawn by a seed, for a person to judge.

The repositories stand in testdata/corpus/public.toml with the queries that found them. A seed decides their order and
which reports are taken. A report is judged with the source at hand, and the verdict is kept in testdata/corpus/draws.
"""
import collections
import glob
import json
import os
import random
import subprocess
import sys
import tomllib

REPORTS = 60          # of a draw: half of each language, and of these half of each level while there are enough
PER_REPOSITORY = 3    # so that no repository dominates
AROUND = 8            # source lines before and after a report
LONGEST = 600         # seconds for one repository; one that takes longer has no report
PYTHON_ENDS = (".py", ".ipynb")
SETTINGS_ENDS = (".json", ".yaml", ".yml")  # which Python reads


def read_toml(path):
    with open(path, "rb") as f:
        return tomllib.load(f)


def order(queries, rng):
    """Repositories as the seed orders them, the languages of the queries in turn."""
    by_language = {}
    for query in queries:
        by_language.setdefault(query["language"], []).extend(query["repositories"])
    lists = []
    for language in sorted(by_language):
        names = sorted(by_language[language])
        rng.shuffle(names)
        lists.append(names)
    longest = max(map(len, lists))
    return [names[i] for i in range(longest) for names in lists if i < len(names)]


def checkout(name, sources, clone):
    """(folder, commit) of a repository; (None, None) when it is not there and may not or cannot be cloned."""
    folder = os.path.join(sources, name)
    if clone and not os.path.isdir(folder):
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"https://github.com/{name}", folder], check=False)
    if not os.path.isdir(folder):
        return None, None
    commit = subprocess.run(["git", "-C", folder, "rev-parse", "--verify", "--quiet", "HEAD"], capture_output=True,
                            text=True, check=False).stdout.strip()
    return folder, commit


def text_of(folder, path):
    with open(os.path.join(folder, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def findings_of(folder, args):
    """Errors and warnings of one run over the whole checkout, as a user makes it: no configuration, the rules that are
    on. Python says which kernels run, and with which dtypes."""
    command = [args.mp_lint, "--no-cache", "--isolated", "--output", "json", "--cuda", args.cuda,
               "--torch-headers", args.torch, ".", "--", *own_headers(folder)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        print(f"{folder}: no report in {LONGEST} s", file=sys.stderr)
        return []
    if not done.stdout.lstrip().startswith("{"):
        print(f"{folder}: no report (exit {done.returncode}): {done.stderr.strip()[-200:]}", file=sys.stderr)
        return []
    found = [f for f in json.loads(done.stdout)["findings"] if f["severity"] in ("error", "warning")]
    for f in found:
        f["file"] = os.path.relpath(os.path.join(folder, f["file"]), folder)
    return found


def own_headers(folder):
    places = [folder] + [os.path.join(folder, p) for p in ("include", "csrc", "src")]
    return [flag for place in places if os.path.isdir(place) for flag in ("-I", os.path.abspath(place))]


def excerpt(folder, finding):
    if finding["file"].endswith(".ipynb"):
        return "(a notebook)"
    lines = text_of(folder, finding["file"]).splitlines()
    first = max(finding["line"] - 1 - AROUND, 0)
    return "\n".join(f"{number:6} {lines[number - 1]}"
                     for number in range(first + 1, min(finding["line"] + AROUND, len(lines)) + 1))


def reports_of(name, args, rng, wanted, known_files, seen):
    """The reports of a repository that may be drawn, in the order of the seed; None when it is absent."""
    folder, commit = checkout(name, args.sources, args.clone)
    if folder is None:
        return None
    rows = []
    for f in findings_of(folder, args) if wanted else []:
        if f["file"].startswith("..") or any(f["file"].endswith(known) for known in known_files):
            continue
        source = excerpt(folder, f)
        copy = (f["rule"], os.path.basename(f["file"]), source.replace(" ", "").split("\n", 1)[-1])
        if copy in seen:   # public code is copied from repository to repository: one of each is enough
            continue
        seen.add(copy)
        rows.append({"repository": name, "commit": commit, "place": f"{f['file']}:{f['line']}", "rule": f["rule"],
                     "level": f["severity"], "message": f["message"], "source": source,
                     "language": "Python" if f["file"].endswith(PYTHON_ENDS + SETTINGS_ENDS) else "C++ and CUDA"})
    rng.shuffle(rows)
    return rows


def draw(args, root):
    public = read_toml(os.path.join(root, "testdata/corpus/public.toml"))
    expected = read_toml(os.path.join(root, "testdata/corpus/expectations.toml"))
    known_files = {"/" + f for row in expected["row"] for f in row["files"] if "/" in f}
    drawn = {name for sheet in sheets(root) if sheet["seed"] != args.draw for name in sheet["looked_at"]}
    rng = random.Random(args.draw)
    room = {(language, level): REPORTS // 4
            for language in ("Python", "C++ and CUDA") for level in ("error", "warning")}
    taken, spare, looked_at, seen = [], [], [], set()
    for name in order(public["query"], rng):
        if not any(room.values()) or len(looked_at) == args.repositories:
            break
        if name in drawn:
            continue
        wanted = {language for (language, _), left in room.items() if left}
        rows = reports_of(name, args, random.Random(f"{args.draw} {name}"), wanted, known_files, seen)
        if rows is None:
            continue
        looked_at.append(name)
        here = 0
        for row in rows:
            if here == PER_REPOSITORY:
                break
            kind = row["language"], row["level"]
            here += 1
            if room[kind]:
                room[kind] -= 1
                taken.append(row)
            else:
                spare.append(row)
        print(f"{name}: {len(rows)} reports, still wanted {sum(room.values())}", file=sys.stderr)
    for language in ("Python", "C++ and CUDA"):
        missing = REPORTS // 2 - sum(row["language"] == language for row in taken)
        taken += [row for row in spare if row["language"] == language][:missing]
    taken.sort(key=lambda row: (row["language"], row["level"], row["rule"], row["repository"], row["place"]))
    return looked_at, taken


def sheet_text(seed, looked_at, rows):
    """The sheet as TOML; JSON strings are TOML strings."""
    lines = [f"seed = {seed}", "readings = 1", "looked_at = [", *[f"  {json.dumps(name)}," for name in looked_at], "]"]
    for row in rows:
        lines += ["", "[[report]]"] + [f"{key} = {json.dumps(row[key], ensure_ascii=False)}" for key in
                                       ("language", "repository", "commit", "place", "rule", "level", "message")]
        lines += [f"# {line}" for line in row["source"].splitlines()] + ['verdict = ""', 'reason = ""']
    return "\n".join(lines)


def sheets(root):
    paths = glob.glob(os.path.join(root, "testdata/corpus/draws/*.toml"))
    return sorted(map(read_toml, paths), key=lambda sheet: sheet["seed"])


def level_now(row, found):
    """error, warning, or quiet: a note or nothing."""
    file, line = row["place"].rsplit(":", 1)
    here = {f["severity"] for f in found
            if f["rule"] == row["rule"] and f["file"] == file and abs(f["line"] - int(line)) <= 1}
    return "error" if "error" in here else "warning" if here else "quiet"


def rejudge(args, root):
    """What a change of the rules does to the judged reports whose sources are at hand, at their commits."""
    counts = collections.Counter()
    for sheet in sheets(root):
        for name in sheet["looked_at"]:
            judged = [row for row in sheet["report"] if row["repository"] == name]
            folder, commit = checkout(name, args.sources, False) if judged else (None, None)
            if commit is None or commit != judged[0]["commit"]:
                counts.update((r["language"], r["level"], r["verdict"], "absent") for r in judged)
                continue
            found = findings_of(folder, args)
            for row in judged:
                now = level_now(row, found)
                counts[row["language"], row["level"], row["verdict"], now] += 1
                if args.verbose and now != row["level"]:
                    print(sheet["seed"], name, row["place"], row["rule"], row["verdict"], row["level"], "is", now)
    print("| language | judged | verdict | error now | warning now | quiet now | not at hand |")
    print("|---|---|---|---|---|---|---|")
    for language, level, verdict in sorted({key[:3] for key in counts}):
        cells = [counts[language, level, verdict, now] for now in ("error", "warning", "quiet", "absent")]
        print("| " + " | ".join(map(str, (language, level, verdict, *cells))) + " |")


def share(rows, verdict):
    decided = [row for row in rows if row["verdict"] != "open"]
    good = sum(row["verdict"] == verdict for row in decided)
    return f"{good} of {len(decided)}" + (f" ({100 * good // len(decided)} %)" if decided else "")


def table_row(name, group, language):
    """One row over the sheets of a group."""
    rows = [row for sheet in group for row in sheet["report"] if row["language"] == language]
    errors, warnings = ([r for r in rows if r["level"] == level] for level in ("error", "warning"))
    return (f"| {name} | {sum(len(sheet['looked_at']) for sheet in group)} | {language} | {share(errors, 'true')} | "
            f"{share(warnings, 'useful')} | {sum(r['verdict'] == 'open' for r in rows)} | "
            f"{max(sheet['readings'] for sheet in group)} | {sum('first_reading' in r for r in rows)} |")


def rules(root, first, last):
    """How often each rule was right, by the judged reports of the draws from the first to the last."""
    counts = collections.Counter()
    for sheet in sheets(root):
        for row in sheet["report"] if first <= sheet["seed"] <= last else []:
            if row["verdict"] != "open":
                counts[row["language"], row["level"], row["rule"], row["verdict"] in ("true", "useful")] += 1
    print("| language | level | rule | right | of |")
    print("|---|---|---|---|---|")
    for kind in sorted({key[:3] for key in counts}):
        right, wrong = counts[*kind, True], counts[*kind, False]
        print("| " + " | ".join((*kind, str(right), str(right + wrong))) + " |")


def tables(root):
    """The judged draws as the table of docs/lint-draws.md, and its last five and all of it together."""
    print("| draw | repositories | language | errors true | warnings useful | not decided | readings | differed |")
    print("|---|---|---|---|---|---|---|---|")
    known = sheets(root)
    groups = [(str(sheet["seed"]), [sheet]) for sheet in known]
    groups += [(f"{known[-5]['seed']} to {known[-1]['seed']}", known[-5:]), ("all", known)]
    for name, group in groups:
        for language in ("Python", "C++ and CUDA"):
            print(table_row(name, group, language))
