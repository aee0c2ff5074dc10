"""script/tidy fails when it finds nothing to check although it was asked for all sources.

    tidy_test.py ROOT
"""
import os
import subprocess
import sys
import tempfile

root = sys.argv[1]
with tempfile.TemporaryDirectory() as build:
    # A build of another tree: it compiles no source of this one.
    with open(os.path.join(build, "compile_commands.json"), "w") as f:
        f.write('[{"directory": "/", "file": "/elsewhere/a.cpp", "command": "c++ -c a.cpp"}]\n')
    done = subprocess.run([os.path.join(root, "script/tidy"), "--all", build], capture_output=True, text=True)
    if done.returncode != 2 or build not in done.stderr:
        sys.exit(f"script/tidy --all with another tree's build: exit {done.returncode}, {done.stdout}{done.stderr}")
    done = subprocess.run([os.path.join(root, "script/tidy"), "--all", os.path.join(build, "none")],
                          capture_output=True, text=True)
    if done.returncode != 2:
        sys.exit(f"script/tidy --all without a build: exit {done.returncode}")
