"""Figures that come late, as those of a GPU do, give the report that figures at once give.

    late_test.py        needs MP_TRACE and the test adapters beside it; MP_LONG=1 runs every mode
"""
import json
import os
import subprocess
import tempfile
import unittest

from traced import LONG, PYTHON, ROOT, TRACE, needs_torch

ADAPTERS = os.path.join(os.path.dirname(os.path.dirname(TRACE)), "test-adapters")
PROGRAM = os.path.join(ROOT, "testdata/programs/numerics/seeded_gpt.py")
OF_THE_RUN = {"pid", "started", "wall_ms", "run"}  # differ from run to run


def timeless(value):
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in OF_THE_RUN}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def differences(a, b, path=""):
    """Up to a few paths at which two reports differ."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return [d for key in a for d in differences(a[key], b[key], f"{path}/{key}")][:5]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{path}[{i}]")][:5]
    return [] if a == b else [f"{path}: {str(a)[:80]} and {str(b)[:80]}"]


# Its second step has more ops than there is room for figures.
EVALUATION = """
import torch
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(8, 4)
for step in range(3):
    optimizer.zero_grad()
    if step == 1:
        with torch.no_grad():
            y = torch.ones(4, dtype=torch.bfloat16)
            for i in range(70_000):
                y = y.neg()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
"""


@needs_torch(2)
class Late(unittest.TestCase):
    def report(self, mode, bug, late):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **({"MP_TRACE_TEST_LATE": late} if late else {})}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([TRACE, "-q", "--mode", mode, "--adapters", ADAPTERS, "-o", "run", "--", PYTHON, PROGRAM,
                            "--bug", bug], cwd=folder, env=environment, check=True, capture_output=True)
            told = subprocess.run([TRACE, "report", "run", "--json", "-"], cwd=folder, capture_output=True, check=True)
        return timeless(json.loads(told.stdout))

    def test_losses_have_room_beside_an_evaluation(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "evaluation.py"), "w", encoding="utf-8") as f:
                f.write(EVALUATION)
            subprocess.run([TRACE, "-q", "--mode", "trajectory", "--adapters", ADAPTERS, "-o", "run", "--", PYTHON,
                            "evaluation.py"], cwd=folder, env={**os.environ, "MP_TRACE_TEST_LATE": "20"}, check=True)
            told = subprocess.run([TRACE, "report", "run", "--json", "-"], cwd=folder, capture_output=True, check=True)
        report = json.loads(told.stdout)
        losses = [step["ranks"][0]["losses"] for step in report["steps"]]
        self.assertEqual([len(of_step) for of_step in losses], [1, 1, 1])
        for (loss,) in losses:
            self.assertEqual(loss["loss"], loss["twin_loss"])
            self.assertGreater(loss["loss"], 0)
        self.assertIn("had no room in their step", " ".join(note["text"] for note in report["notes"]))

    def check(self, mode, bug):
        at_once = self.report(mode, bug, "")
        self.assertTrue(at_once["steps"])
        for steps in ("1", "20") if LONG else ("20",):  # 20: every figure comes at the end of the program
            self.assertEqual(differences(at_once, self.report(mode, bug, steps)), [], steps)

    def test_an_overflow_and_what_follows_it(self):
        self.check("trajectory", "overflow")

    @unittest.skipUnless(LONG, "left to --long")
    def test_a_sum_that_absorbs(self):
        self.check("trajectory", "accum")

    @unittest.skipUnless(LONG, "left to --long")
    def test_watch(self):
        self.check("watch", "overflow")

    def test_local(self):
        self.check("local", "stagnate")


if __name__ == "__main__":
    unittest.main()
