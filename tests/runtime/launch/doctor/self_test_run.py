"""`mp-trace doctor --self-test` with a real torch and its real adapter: every line must say ok.

Arguments: mp-trace, the interpreter. Exit 77 (skipped) without a torch or an adapter for it in this build.
"""
import json
import os
import subprocess
import sys

tool, python = sys.argv[1:3]


def doctor(*options):
    done = subprocess.run([tool, "doctor", "--json", "--python", python, *options], capture_output=True, text=True,
                          timeout=540)
    return done.returncode, json.loads(done.stdout)


def lines(report, section):
    return [line for s in report["sections"] if s["name"] == section for line in s["lines"]]


def skip(why):
    print("SKIPPED:", why)
    sys.exit(77)


if not os.access(python, os.X_OK):
    skip(f"{python} is not installed")
_, report = doctor("--only", "torch")
adapter = [line for line in lines(report, "torch") if line["key"] == "adapter"]
if not adapter or adapter[0]["verdict"] != "ok":
    skip(f"no torch, or no adapter for it in this build: {adapter}")

status, report = doctor("--only", "launcher", "--self-test")
tested = lines(report, "self-test")
for line in tested:
    print(line["verdict"], line["key"], line["value"], line["hint"])
assert [line["verdict"] for line in tested] == ["ok"] * 5, "the self-test fails"
assert status == 0 and report["traceable"]

# An interpreter that runs nothing leaves nothing to compare: that is a failure, not a pass.
broken = subprocess.run([tool, "doctor", "--only", "launcher", "--self-test", "--python", "/bin/false"],
                        capture_output=True, text=True, timeout=540)
assert broken.returncode == 1 and "the untraced run exited with status 1" in broken.stdout, broken.stdout
