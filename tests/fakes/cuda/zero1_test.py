"""zero1_gpt under the fakes: it trains, repeats its bits, agrees over ranks, and each defect has its effect.

usage: zero1_test.py ZERO1_GPT FAKES
"""
import os
import re
import subprocess
import sys
import unittest

PROGRAM, FAKES = sys.argv[1:3]


class Run:
    def __init__(self, *flags, faults="", late="0"):
        environment = {**os.environ, "LD_LIBRARY_PATH": FAKES, "MP_FAKE_CUDA": faults, "MP_FAKE_CUDA_LATE": late}
        done = subprocess.run([PROGRAM, *map(str, flags)], env=environment, capture_output=True, text=True, timeout=120)
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
        self.losses = [float.fromhex(x) for x in re.findall(r"loss (-?0x\S+|-?nan|inf)", self.output)]
        self.skipped = [int(x) for x in re.findall(r"step (\d+) .*skipped", self.output)]
        moved = re.search(r"moved ([\d.]+)", self.output)
        self.moved = float(moved.group(1)) if moved else None


def apart(one, other):
    return max(abs(a - b) for a, b in zip(one.losses, other.losses, strict=True))


class Zero1(unittest.TestCase):
    def test_trains_in_each_precision_on_each_number_of_ranks_and_repeats_its_bits(self):
        for precision, tolerance in (("fp32", 1e-5), ("bf16", 3e-3), ("fp16", 1e-3)):
            alone = None
            for ranks in (1, 2, 3):
                run = Run("--precision", precision, "--spawn", ranks, "--steps", 8)
                again = Run("--precision", precision, "--spawn", ranks, "--steps", 8, late="20")
                with self.subTest(precision=precision, ranks=ranks):
                    self.assertEqual((run.status, run.errors), (0, ""))
                    self.assertEqual(run.output, again.output)
                    self.assertEqual(len(run.losses), 8)
                    self.assertLess(run.losses[-1], run.losses[0] - 0.3)
                    alone = alone or run
                    self.assertLess(apart(run, alone), tolerance)

    def test_an_id_that_a_killed_run_left_is_not_read(self):
        """Process numbers come again. A rank that read the old id waited for ranks that were gone."""
        words = [PROGRAM, "--spawn", "6", "--steps", "1"]
        script = 'printf /mp-fake-nccl-gone > "/tmp/zero1_gpt.$$" && truncate -s 128 "/tmp/zero1_gpt.$$" && exec "$@"'
        run = subprocess.Popen(["sh", "-c", script, "sh", *words], env={**os.environ, "LD_LIBRARY_PATH": FAKES},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, errors = run.communicate(timeout=120)
        if os.path.exists(f"/tmp/zero1_gpt.{run.pid}"):
            os.remove(f"/tmp/zero1_gpt.{run.pid}")
        self.assertEqual((run.returncode, errors), (0, ""))
        self.assertIn("step 0", output)

    def test_a_graph_of_the_forward_pass_gives_the_same_bits(self):
        self.assertEqual(Run("--graph").output, Run().output)

    def test_an_overflow_of_one_rank_skips_that_step_on_all(self):
        run = Run("--precision", "fp16", "--spawn", 2, "--overflow-at", 3, 1, "--overflow-rank", 1, "--steps", 6)
        self.assertEqual(run.skipped, [3])
        self.assertIn("step 4", run.output)
        self.assertIn("scale 512", run.output)

    def test_without_a_guard_an_overflow_ends_the_training(self):
        run = Run("--overflow-at", 2, 0, "--no-guard", "--steps", 4)
        self.assertEqual(run.skipped, [])
        self.assertEqual(str(run.losses[-1]), "nan")

    def test_weights_without_a_master_stagnate(self):
        self.assertLess(Run("--no-master", "--lr", 1e-4).moved, 0.6)
        self.assertGreater(Run("--lr", 1e-4).moved, 0.75)

    def test_defects_change_the_losses(self):
        plain = {p: Run("--precision", p, "--spawn", 3, "--steps", 4).losses for p in ("bf16", "fp16")}
        for precision, defect in (("fp16", "--half-accumulator"), ("bf16", "--half-accumulator"),
                                  ("bf16", "--split-k"), ("bf16", "--average")):
            with self.subTest(precision=precision, defect=defect):
                run = Run("--precision", precision, "--spawn", 3, "--steps", 4, defect)
                self.assertEqual(run.status, 0)
                self.assertNotEqual(run.losses, plain[precision])

    def test_refused_memory_and_failed_launches_end_it_with_a_message(self):
        run = Run(faults="cudaMalloc#2=2")
        self.assertEqual(run.status, 1)
        self.assertIn("out of memory", run.errors)
        run = Run(faults="cudaLaunchKernel#40=719")
        self.assertEqual(run.status, 1)
        self.assertIn("unspecified launch failure", run.errors)


unittest.main(argv=sys.argv[:1])
