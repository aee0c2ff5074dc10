"""What these tests share: mp-trace, a Python with torch, and a folder and an environment for each test.

    MP_TRACE=build/release/bin/mp-trace X_test.py [PYTHON]      PYTHON has torch; default .venv's

MP_LONG=1 runs every form of a case in every mode; else those that no other form stands for.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TRACE = os.path.abspath(os.environ["MP_TRACE"])
PYTHON = os.path.join(ROOT, ".venv/bin/python")
if len(sys.argv) > 1 and "/" in sys.argv[1]:
    PYTHON = os.path.abspath(sys.argv.pop(1))
LONG = os.environ.get("MP_LONG") == "1"
# What a launcher or another run left in the environment.
FOREIGN = ("MP_TRACE", "TORCH", "RANK", "LOCAL_RANK", "WORLD_SIZE")


def torch_version(python):
    """The first number of its torch's version, 0 without one. The import of torch takes seconds."""
    if not os.path.exists(python):
        return 0
    probe = [python, "-c", "import importlib.metadata as m; print(m.version('torch'))"]
    version = subprocess.run(probe, capture_output=True, text=True).stdout
    return int(version.split(".")[0]) if version else 0


def has_torch(least=1):
    return torch_version(PYTHON) >= least


def needs_torch(least=1):
    """Skips a class of tests where PYTHON has no torch, or an older one."""
    return unittest.skipUnless(has_torch(least), f"skipped: {PYTHON} has no torch {least}")


class TracedTest(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="mp-torch-")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self.env.update(OMP_NUM_THREADS="1", XDG_CACHE_HOME=os.path.join(self.top, "cache"))

    def script(self, text):
        path = os.path.join(self.top, "train.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path
