"""Traced programs that fail, or make us fail: what they print, save and exit with is what it is untraced.

    MP_TRACE=build/release/bin/mp-trace harm_test.py [PYTHON]      PYTHON has torch; default .venv's, else Debian's
"""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from traced import LONG, PYTHON, ROOT, TRACE, TracedTest, needs_torch

HOME = os.path.dirname(os.path.dirname(TRACE))
ADAPTERS = os.path.join(HOME, "lib/mp-trace/adapters")
# The adapters with switches for tests (instrument/torch/test_hooks.hpp).
TEST_ADAPTERS = os.path.join(HOME, "test-adapters")
# Debian's own launcher of 1.13 does not run on Debian's Python 3.11.
TORCHRUN = "" if PYTHON.startswith("/usr/bin/") else os.path.join(os.path.dirname(PYTHON), "torchrun")
PROGRAMS = os.path.join(ROOT, "testdata/programs/gpt")
KILLS = int(os.environ.get("MP_KILLS", "2"))

HEAD = """
import os, sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
"""
TRAIN = HEAD + """
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
def step(extra=lambda y: y):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = extra(model(torch.randn(5, 8)))
    loss = y.float().square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), flush=True)
"""
# Memory whose size and layout depend on the dtype goes from the forward of a recurrent layer to its backward.
RECURRENT = HEAD + """
for kind, options in ((torch.nn.LSTM, {}), (torch.nn.GRU, {}),
                      (torch.nn.LSTM, {"num_layers": 2, "bidirectional": True}),
                      (torch.nn.LSTM, {"batch_first": True, "dropout": 0.1, "num_layers": 2})):
    for dtype in (torch.bfloat16, torch.float16):
        model = kind(64, 64, **options).to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            try:
                loss = model(torch.randn(5, 3, 64).to(dtype))[0].float().square().mean()
                loss.backward()
            except RuntimeError as e:  # this torch has no such kernel
                print(str(e).splitlines()[0])
                break
            optimizer.step()
            print(loss.item().hex(), [p.grad.float().sum().item().hex() for p in model.parameters()], flush=True)
"""
# The program keeps such memory itself and calls the backward by hand.
OWN_BACKWARD = HEAD + """
lstm = torch.nn.LSTM(64, 64).bfloat16()
weights = [w.detach() for w in lstm.parameters()]
state = torch.zeros(1, 3, 64).bfloat16()
x = torch.randn(5, 3, 64).bfloat16()
how = (2, 64, 1, True)
y, h, c, kept = torch.mkldnn_rnn_layer(x, *weights, state, state, False, [], *how, False, False, True)
copy = kept.clone()
grads = torch.ops.aten.mkldnn_rnn_layer_backward(x, *weights, state, state, y, h, c, torch.ones_like(y), None, None,
                                                 False, *how, True, False, [], False, copy)
print([g.float().sum().item().hex() for g in grads])
"""


@needs_torch()
class Harm(TracedTest):
    untraced = {}  # script -> how it ends; several tests run the same one

    def setUp(self):
        super().setUp()
        self.env["PYTHONHASHSEED"] = "0"

    def run_command(self, command, **more):
        return subprocess.run(command, capture_output=True, env=self.env, cwd=self.top, timeout=300, **more)

    def trace(self, command, options=("--mode", "trajectory"), tool=TRACE):
        self.directory = os.path.join(self.top, "run")
        shutil.rmtree(self.directory, ignore_errors=True)
        return self.run_command([tool, *options, "--no-build", "-o", self.directory, "--", *command])

    def report(self):
        done = self.run_command([TRACE, "report", self.directory, "--json", "-"])
        return json.loads(done.stdout)

    def same(self, text, options=("--mode", "trajectory"), tool=TRACE):
        """Runs a script untraced and traced; everything but our own lines must agree."""
        path = self.script(text)
        if text not in self.untraced:
            self.untraced[text] = self.run_command([PYTHON, path])
        plain = self.untraced[text]
        traced = self.trace([PYTHON, path], options, tool)
        self.assertEqual(traced.returncode, plain.returncode, traced.stderr.decode())
        self.assertEqual(traced.stdout, plain.stdout)
        ours = [line for line in traced.stderr.splitlines() if line.startswith(b"mp-trace: ")]
        rest = [line for line in traced.stderr.splitlines() if not line.startswith(b"mp-trace: ")]
        self.assertEqual(rest, plain.stderr.splitlines())
        return ours

    def test_a_script_that_raises_ends_as_it_does_untraced(self):
        self.same(TRAIN + "step(); step(); raise ValueError('mine')")

    def test_a_script_that_exits_in_the_middle_keeps_its_status(self):
        self.same(TRAIN + "step(); sys.exit(42)")
        self.same(TRAIN + "step(); os._exit(7)")

    def test_a_script_killed_by_its_own_signal_dies_of_it(self):
        self.same(TRAIN + "step(); os.kill(os.getpid(), 15)")

    def test_an_error_of_an_op_reaches_the_program_unchanged(self):
        self.same(TRAIN + """
step()
try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError as e:
    print(str(e).splitlines()[0])
step()
""")

    def test_a_twin_op_that_fails_is_counted_and_the_program_goes_on(self):
        # Ops that are defined after the import of torch are not followed: the test adapter makes one of torch's fail.
        self.env["MP_TRACE_TEST_DISABLE_RULE"] = "gelu"
        self.same(TRAIN + "step(); step(); step()", ("--mode", "trajectory", "--adapters", TEST_ADAPTERS))
        self.assertEqual(self.report()["coverage"]["failed"], 3)

    def test_faults_of_ours_stop_the_twin_and_not_the_program(self):
        self.env["MP_TRACE_TEST_DISABLE_RULE"] = "prepare"
        ours = self.same(TRAIN + "step(); step()", ("--mode", "trajectory", "--adapters", TEST_ADAPTERS))
        self.assertTrue(any(b"internal faults" in line for line in ours), ours)

    def test_the_adapter_that_users_load_has_no_switches_for_tests(self):
        self.env["MP_TRACE_TEST_DISABLE_RULE"] = "prepare"
        self.env["MP_TRACE_TEST_OPLOG"] = os.path.join(self.top, "oplog")
        ours = self.same(TRAIN + "step(); step()")
        self.assertFalse(any(b"internal faults" in line for line in ours), ours)
        self.assertFalse(os.path.exists(self.env["MP_TRACE_TEST_OPLOG"]))

    @unittest.skipUnless(os.path.exists(TORCHRUN), "skipped: no working torchrun beside this python")
    def test_a_rank_that_gave_its_twin_up_still_attends_the_twins_collectives(self):
        # The ranks share one pipe: a line is one write, so that two lines never mix.
        path = self.script("import os\ndef print(line, flush=True): os.write(1, f'{line}\\n'.encode())\n" + TRAIN + """
import torch.distributed as dist
dist.init_process_group("gloo")
for k in range(4):
    step()
    total = torch.full((3,), float(dist.get_rank() + 1))
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(total.tolist())
dist.destroy_process_group()
""")
        # One rank's twin fails, the other's does not.
        wrapper = os.path.join(self.top, "one.sh")
        with open(wrapper, "w") as f:
            f.write('#!/bin/sh\n[ "$RANK" = 1 ] && export MP_TRACE_TEST_DISABLE_RULE=after_two\nexec "$@"\n')
        os.chmod(wrapper, 0o755)
        job = [TORCHRUN, "--standalone", "--nproc-per-node", "2", "--no-python", wrapper, PYTHON, path]
        plain = self.run_command(job)
        traced = self.trace(job, ("--mode", "trajectory", "--adapters", TEST_ADAPTERS))
        self.assertEqual(traced.returncode, 0, traced.stderr.decode()[-2000:])
        self.assertEqual(sorted(traced.stdout.splitlines()), sorted(plain.stdout.splitlines()))
        self.assertIn(b"internal faults", traced.stderr)

    def test_the_users_torch_without_an_adapter_runs_untraced_with_one_line(self):
        bare = os.path.join(self.top, "prefix")
        for part in ("bin/mp-trace", "lib/mp-trace/libmptrace_preload.so"):
            os.makedirs(os.path.dirname(os.path.join(bare, part)), exist_ok=True)
            shutil.copy(os.path.join(HOME, part), os.path.join(bare, part))
        shutil.copytree(os.path.join(HOME, "lib/mp-trace/python"), os.path.join(bare, "lib/mp-trace/python"))
        ours = self.same(TRAIN + "step(); step()", tool=os.path.join(bare, "bin/mp-trace"))
        self.assertTrue(any(b"untraced" in line for line in ours), ours)

    def test_an_adapter_of_another_torch_is_refused_and_the_program_runs(self):
        wrong = os.path.join(self.top, "adapters")
        os.mkdir(wrong)
        names = [os.path.basename(p) for p in glob.glob(os.path.join(ADAPTERS, "*.so"))]
        if len(names) < 2:
            self.skipTest("one torch only: there is no adapter of another one")
        for name, other in zip(names, names[1:] + names[:1]):
            shutil.copy(os.path.join(ADAPTERS, other), os.path.join(wrong, name))
        ours = self.same(TRAIN + "step(); step()", options=("--mode", "trajectory", "--adapters", wrong))
        self.assertTrue(any(b"untraced" in line for line in ours), ours)

    def test_a_recording_that_may_grow_no_further_stops_and_the_program_goes_on(self):
        # The program keeps the default action of SIGXFSZ, which would end it.
        self.same(TRAIN + "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n" + "step()\n" * 20)
        self.assertLessEqual(max(os.path.getsize(f) for f in glob.glob(self.directory + "/*.mpt")), 900)

    def test_children_forked_in_training_leave_no_recording(self):
        self.same(TRAIN + """
for _ in range(5):
    step()
    child = os.fork()
    if child == 0:
        torch.ones(3).sum().item()
        os._exit(0)
    os.waitpid(child, 0)
""")
        self.assertEqual(len(glob.glob(self.directory + "/*.mpt")), 1)

    def test_every_mode_leaves_results_alone(self):
        for mode in ("watch", "local", "step", "trajectory"):
            with self.subTest(mode):
                self.same(TRAIN + "step()\n" * 4, options=("--mode", mode))
                self.assertEqual(len(self.report()["steps"]), 4)

    def test_recurrent_layers_in_16_bits_train_in_every_mode(self):
        for mode in ("watch", "local", "step", "trajectory") if LONG else ("local", "trajectory"):
            with self.subTest(mode):
                self.same(RECURRENT, options=("--mode", mode))

    def test_an_op_whose_integers_have_another_size_in_the_twin_is_not_repeated(self):
        plain = self.untraced[OWN_BACKWARD] = self.run_command([PYTHON, self.script(OWN_BACKWARD)])
        if plain.returncode != 0:
            self.skipTest("this torch or processor has no bf16 kernel: " + plain.stderr.decode()[-200:])
        for mode in ("local", "trajectory"):
            with self.subTest(mode):
                self.same(OWN_BACKWARD, options=("--mode", mode))
                told = str(self.report()["coverage"]["not_observed"])
                self.assertIn("an integer argument has another size in fp32", told)

    @unittest.skipUnless(os.path.exists(TORCHRUN), "skipped: no working torchrun beside this python")
    def test_a_rank_that_dies_takes_the_job_down_as_it_does_untraced(self):
        # The ranks share one pipe: a line is one write, so that two lines never mix.
        path = self.script("import os\ndef print(line, flush=True): os.write(1, f'{line}\\n'.encode())\n" + TRAIN + """
import torch.distributed as dist
dist.init_process_group("gloo")
for k in range(4):
    step()
    if dist.get_rank() == 1 and k == 1:
        os._exit(3)
    dist.all_reduce(torch.ones(3))
""")
        job = [TORCHRUN, "--standalone", "--nproc-per-node", "2", path]
        plain = self.run_command(job)
        traced = self.trace(job)
        self.assertEqual(traced.returncode, plain.returncode)
        self.assertEqual(len(glob.glob(self.directory + "/*.mpt")), 2)
        self.assertTrue(self.report()["steps"])

    @unittest.skipUnless(os.path.exists(TORCHRUN), "skipped: no working torchrun beside this python")
    def test_a_killed_job_leaves_every_file_readable(self):
        draw = random.Random(1)
        directory = os.path.join(self.top, "kill")
        for kill in range(KILLS):
            shutil.rmtree(directory, ignore_errors=True)
            job = subprocess.Popen(
                [TRACE, "-q", "--mode", "trajectory", "-o", directory, "--", TORCHRUN, "--standalone",
                 "--nproc-per-node", "2", os.path.join(PROGRAMS, "fsdp_gpt.py"), "--steps", "500"],
                env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True)
            seen = 0
            for line in job.stdout:
                seen += line.startswith("step ")
                if seen == 3:
                    break
            time.sleep(draw.uniform(0, 1.0))
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            job.stdout.close()
            done = self.run_command([TRACE, "report", directory, "--json", "-"])
            self.assertEqual(done.returncode, 0, done.stderr)
            steps = json.loads(done.stdout)["steps"]
            # Rank 0 printed three steps; the last of them may be the one in flight.
            self.assertGreaterEqual(len(steps), 2, f"kill {kill}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
