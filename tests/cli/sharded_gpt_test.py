"""mp-lint names the line of sharded_gpt whose logits overflow when it runs: MP101, across two functions.

Through mp-lint's own headers of torch, so that it takes seconds and needs no libtorch.

Usage: sharded_gpt_test.py MP_LINT REPOSITORY
"""
import json
import os
import subprocess
import sys

lint, root = sys.argv[1], sys.argv[2]
program = os.path.join(root, "testdata", "programs", "sharded_gpt")
FILES = ["half_head.cpp", "model.cpp"]


def main():
    stubs = os.path.join(root, "analyzer", "stubs", "torch")
    done = subprocess.run([lint, "--no-cache", "--isolated", "--output", "json", *FILES, "--", "-I" + stubs],
                          cwd=program, capture_output=True, text=True)
    assert done.returncode == 1, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    report = json.loads(done.stdout)
    states = {os.path.basename(u["path"]): u["state"] for u in report["units"]}
    assert states == dict.fromkeys(FILES, "ok"), states
    with open(os.path.join(program, "half_head.cpp"), encoding="utf-8") as f:
        line = 1 + next(i for i, text in enumerate(f) if ".to(torch::kHalf)" in text)
    found = [(f["rule"], f["file"], f["line"]) for f in report["findings"]]
    assert found == [("MP101", "half_head.cpp", line)], found
    notes = " ".join(n["text"] for n in report["findings"][0]["notes"])
    assert "set_cpu_enabled" in notes and "half_head calls" in notes, notes


main()
