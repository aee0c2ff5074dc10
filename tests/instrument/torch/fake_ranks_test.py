"""mp-trace beside two ranks on the device of tests/fakes/torch, whose collectives run late on a stream of their own.

    fake_ranks_test.py [TEST...]        needs MP_TRACE in a build with the device

MP_LONG=1 adds the plain form of each strategy, and more amounts of memory.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from traced import LONG, PYTHON, ROOT

sys.path[:0] = [os.path.join(ROOT, "tests/gpu"), os.path.join(ROOT, "tests/fakes/torch")]
import gpu_test  # noqa: E402
import runs  # noqa: E402
import wrap  # noqa: E402

BUILD = os.path.dirname(os.path.dirname(os.environ["MP_TRACE"]))
STEPS = 3


@unittest.skipUnless(os.path.exists(PYTHON), "skipped: no torch in .venv")
class FakeRanks(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory(prefix="mp-ranks-")
        self.addCleanup(self.work.cleanup)

    def options(self, **settings):
        tool, python = wrap.wrappers(self.work.name, BUILD, PYTHON, **settings)
        return argparse.Namespace(mp_trace=tool, python=python, device="late", steps=STEPS)

    def report(self, name):
        """The report of the traced run."""
        told = subprocess.run([os.environ["MP_TRACE"], "report", "trace", "--json", "-"], capture_output=True,
                              cwd=os.path.join(self.work.name, name, "traced"), env=runs.environment(), check=True)
        return json.loads(told.stdout)

    def check_truth(self, name):
        self.assertEqual(gpu_test.check(self.options(), name, self.work.name), [])

    @unittest.skipUnless(LONG, "left to --long")
    def test_ddp(self):
        self.check_truth("ddp")

    def test_ddp_with_a_hook(self):
        self.check_truth("ddp, bf16 hook")
        # Sums of bf16 over ranks are compared with fp32 sums on the device.
        sums = [c for c in self.report("ddp, bf16 hook")["collectives"] if c["dtype"] == "bf16"]
        self.assertTrue(sums)
        self.assertTrue(all(c["relative_l2"] for c in sums), sums)

    @unittest.skipUnless(LONG, "left to --long")
    def test_fsdp2(self):
        self.check_truth("fsdp2")

    def test_fsdp2_with_parameters_of_two_dtypes(self):
        self.check_truth("fsdp2, two dtypes")

    def check_shortage(self, command_for, rooms):
        """One rank has `rooms` times the memory of the untraced run. The other one keeps its twin, and knows nothing of
        the first one's values. No collective waits for ever. Returns the reports."""
        plain = self.run_kind(command_for(self.options(MP_LATE_TELL="1"))["plain"], "plain")
        self.assertEqual(plain[0], 0, plain[2][-2000:])
        most = max(map(int, re.findall(rb"late: at most (\d+) bytes", plain[2])))
        for room in rooms:
            with self.subTest(room):
                options = self.options(MP_LATE_MEMORY=str(int(room * most)), MP_LATE_MEMORY_OF="1")
                traced = self.run_kind(command_for(options)["traced"], "traced")
                self.assertEqual(plain[:2], traced[:2], traced[2][-2000:])
                report = self.report("")
                self.assertIn("the twin was given up", " ".join(report["verdict"]["inconclusive"]))
                self.assertEqual([f["rule"] for f in report["findings"] if f["severity"] == "error"], [])
                yield report

    def run_kind(self, command, kind):
        folder = os.path.join(self.work.name, kind)
        shutil.rmtree(folder, ignore_errors=True)
        return runs.run(command, folder, runs.environment())

    def test_one_rank_gives_its_twin_up(self):
        every = (("ddp", (1,)), ("fsdp2", (1, 1.2, 1.5)), ("fsdp2, two dtypes", (1,)))
        for name, rooms in every if LONG else (("ddp", (1,)), ("fsdp2", (1.2,))):
            for _ in self.check_shortage(lambda options, name=name: gpu_test.commands(options, name), rooms):
                files = os.listdir(os.path.join(self.work.name, "traced"))
                self.assertEqual([f for f in files if f.startswith("twin")], ["twin.0"])

    def test_collectives_without_a_twin(self):
        """Also collectives of lists."""
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gathering.py")

        def commands(options):
            plain = [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", program]
            return {"plain": plain, "traced": [options.mp_trace, "--mode", "trajectory", "-o", "trace", "--", *plain]}

        self.assertEqual(len(list(self.check_shortage(commands, (1,)))), 1)

    def test_a_launch_is_refused(self):
        commands = gpu_test.commands(self.options(MP_FAKE_CUDA="cuLaunchKernel#40=719"), "ddp, bf16 hook")
        plain, traced = (runs.run(commands[kind], os.path.join(self.work.name, kind), runs.environment())
                         for kind in ("plain", "traced"))
        self.assertEqual(plain[0], 0, plain[2][-2000:])
        self.assertEqual(plain[:2], traced[:2], traced[2][-2000:])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
