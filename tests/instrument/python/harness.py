"""Shared by the tests of mp-trace's Python part: a program with and without it, on a real torch.

The adapter's ops are defined in Python (stub/sitecustomize.py). Tests are started as
`NAME_test.py PYTHON SHIM_FOLDER [unittest options]`, and skipped with a reason when that Python has no torch.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PYTHON, SHIM = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
STUB = os.path.join(HERE, "stub")


def torch_version():
    command = [PYTHON, "-c", "import torch; print(torch.__version__)"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


VERSION = torch_version()
IS_2 = bool(VERSION) and VERSION.startswith("2")


def without_marks(text):
    """Times, process ids and line numbers of torch's own log lines differ from run to run."""
    # On a busy machine Python's resource tracker now and then complains about its own semaphores.
    text = re.sub(r"[^\n]*resource_tracker[^\n]*\n  warnings\.warn[^\n]*\n", "", text)
    return "\n".join(line for line in text.split("\n") if not re.match(r"(\[rank\d\]:)?[WI]\d{4} ", line))


class Shim(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="shim-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.calls_path = os.path.join(self.folder, "calls")

    def run_it(self, *command, traced=True, mode="trajectory", path=None, **env):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MP_TRACE", "PYTHON", "TORCHDYNAMO"))}
        environment.update({"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                            "PYTHONPATH": os.pathsep.join(path if path is not None else [STUB])})
        if traced:
            options = os.path.join(self.folder, "options.1")
            with open(options, "w", encoding="utf-8") as out:
                out.write(f"mode={mode}\neager={env.pop('eager', '0')}\nquiet={env.pop('quiet', '0')}\n")
            environment.update(MP_TRACE_OPTIONS=options, STUB_CALLS=self.calls_path,
                               PYTHONPATH=SHIM + os.pathsep + environment["PYTHONPATH"])
        environment.update(env)
        return subprocess.run([PYTHON, *command], env=environment, capture_output=True, text=True, timeout=300,
                              cwd=self.folder)

    def calls(self):
        with open(self.calls_path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def script(self, *command, **more):
        return self.run_it(os.path.join(HERE, "processes.py"), *command, **more)


class ScenarioRuns(Shim):
    """All scenarios of a file, once without and once with us."""

    FILE = ""

    @classmethod
    def setUpClass(cls):
        test = cls("run_both")
        test.setUp()
        try:
            test.run_both()
            cls.untraced, cls.traced = test.untraced, test.traced
            cls.by_scenario, name = collections.defaultdict(list), None
            for call in test.calls():
                if call[0] == "scenario":
                    name = call[1]
                else:
                    cls.by_scenario[name].append(call[1:])
        finally:
            test.doCleanups()

    def run_both(self):
        command = os.path.join(HERE, self.FILE)
        self.untraced = self.run_it(command, traced=False)
        self.traced = self.run_it(command)

    def of(self, scenario, *ops):
        if scenario not in self.by_scenario:
            self.skipTest(f"torch {VERSION} has no {scenario}")
        return [call for call in self.by_scenario[scenario] if not ops or call[0] in ops]

    def check_same(self):
        self.assertEqual(self.untraced.returncode, 0, self.untraced.stderr)
        self.assertEqual(self.traced.stdout, self.untraced.stdout)
        self.assertEqual(without_marks(self.traced.stderr), without_marks(self.untraced.stderr))
        self.assertEqual(self.traced.returncode, 0)


def main():
    if VERSION is None:
        print(f"skipped: {PYTHON} has no torch")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
