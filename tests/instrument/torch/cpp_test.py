"""C++ programs: layers by mptrace.h or by call path, and a finding that mp-lint and a run share.

    MP_TRACE=... MP_LINT=... SHARED_GPT=... SCOPED_PROGRAM=... cpp_test.py
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TRACE, LINT, SHARDED_GPT, SCOPED = (os.path.abspath(os.environ[name]) for name in
                                    ("MP_TRACE", "MP_LINT", "SHARDED_GPT", "SCOPED_PROGRAM"))
SOURCES = os.path.join(ROOT, "testdata/programs/sharded_gpt")


def line_of(file, text):
    with open(os.path.join(SOURCES, file)) as f:
        return next(number for number, line in enumerate(f, 1) if text in line)


class Cpp(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="mp-cpp-")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
        self.env.update(OMP_NUM_THREADS="1")

    def run_tool(self, *command, status=0):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.top, env=self.env, timeout=100)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def trace(self, *command):
        shutil.rmtree(os.path.join(self.top, "run"), ignore_errors=True)
        out = self.run_tool(TRACE, "--mode", "trajectory", "--no-build", "-o", "run", "--", *command)
        self.assertEqual(out, self.run_tool(*command))
        return json.loads(self.run_tool(TRACE, "report", "run", "--json", "-"))

    def test_what_a_program_says_of_itself(self):
        report = self.trace(SCOPED)
        steps = [entry for step in report["steps"] for entry in step["ranks"]]
        self.assertEqual([s["skipped"] for s in steps], [False, True])
        self.assertEqual([s["loss_scale"] for s in steps], [1024, 1024])
        printed = [float.fromhex(line) for line in self.run_tool(SCOPED).split()]
        self.assertEqual([float.fromhex(s["loss_hex"]) for s in steps], printed)
        for layer in ("mlp.up", "mlp.down"):
            for phase in ("forward", "backward"):
                place = next(p for p in report["layers"] if (p["layer"], p["phase"]) == (layer, phase))
                self.assertFalse(place["guessed"])
                self.assertIn("aten::mm", [op["op"] for op in place["ops"]])

    def test_layers_by_call_path_with_file_and_line(self):
        report = self.trace(SHARDED_GPT, "--spawn", "2", "--steps", "2")
        block = [p for p in report["layers"] if p["layer"].endswith("BlockImpl.forward") and p["phase"] == "forward"]
        self.assertTrue(block and all(p["guessed"] for p in block))
        softmax = next(op for p in block for op in p["ops"] if op["op"] == "aten::_softmax")
        self.assertEqual(softmax["source"].rpartition("/")[2], f"model.cpp:{line_of('model.cpp', 'torch::softmax')}")

    def test_the_run_confirms_what_lint_has_found(self):
        place = f"half_head.cpp:{line_of('half_head.cpp', '.to(torch::kHalf)')}"
        self.run_tool(LINT, "--output", "json=lint.json", os.path.join(SOURCES, "half_head.cpp"), status=1)
        report = self.trace(SHARDED_GPT, "--spawn", "2", "--steps", "5", "--half-head", "3")
        first = report["findings"][0]
        self.assertEqual((first["rule"], first["phase"], first["step"]), ("MPT001", "forward", 3))
        self.assertTrue(first["source"].endswith(place), first["source"])
        self.assertNotIn("/../", first["source"])  # ccache compiles with paths like build/../src
        verdict = json.loads(self.run_tool(TRACE, "gate", "run", "--lint", "lint.json", "--output", "json", status=1))
        text = json.dumps(verdict)
        self.assertIn("MP101", text)
        confirmed = self.run_tool(TRACE, "gate", "run", "--lint", "lint.json", status=1)
        self.assertRegex(confirmed, r"confirmed by mp-lint: MP101 .*" + place.replace(".", r"\."))
        self.trace(SHARDED_GPT, "--spawn", "2", "--steps", "5")
        unconfirmed = self.run_tool(TRACE, "gate", "run", "--lint", "lint.json", status=1)
        self.assertNotIn("confirmed by", unconfirmed)


if __name__ == "__main__":
    unittest.main()
