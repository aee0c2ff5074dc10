"""The programs of testdata/programs/updates: what a broken one loses is found, and its healthy twin is silent.

    MP_TRACE=build/release/bin/mp-trace updates_test.py [PYTHON]
"""
import json
import os
import shutil
import subprocess
import unittest

from traced import LONG, PYTHON, ROOT, TRACE, TracedTest, needs_torch

FOLDER = os.path.join(ROOT, "testdata/programs/updates")
MASTERS = ("apex-o2", "flat-buffer", "zero-bf16", "sharded", "foreach", "clones", "positions", "assigned", "post-hook",
           "kernel", "reloaded")
# Broken ones that a mode cannot prove: a kernel that bypasses the dispatcher writes the twin's weights too; without a
# twin, weights that are copied and move a little may be rounded stochastically.
UNPROVEN = {"trajectory": {"kernel"},
            "watch": {"flat-buffer", "sharded", "foreach", "assigned"}}


@needs_torch()
class Updates(TracedTest):
    def judged(self, mode, program, *words):
        """The gate's exit status and its findings of updates, as "rule message"."""
        run = os.path.join(self.top, "run")
        shutil.rmtree(run, ignore_errors=True)
        command = [TRACE, "-q", "--mode", mode, "--no-build", "-o", run, "--", PYTHON, program, *words]
        done = subprocess.run(command, capture_output=True, text=True, env=self.env, cwd=self.top, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        gate = subprocess.run([TRACE, "gate", run, "--output", "json"], capture_output=True, text=True, cwd=self.top)
        root = json.loads(gate.stdout)
        return gate.returncode, [f"{f['rule']} {f['message']}" for rule in root["rules"] for f in rule["findings"]]

    def check_masters(self, mode, cases):
        program = os.path.join(FOLDER, "masters.py")
        for case in cases:
            # The twin cannot follow a kernel that bypasses the dispatcher, and the gate says so: inconclusive.
            silent = (3 if (mode, case) == ("trajectory", "kernel") else 0, [])
            with self.subTest(case=case, mode=mode):
                self.assertEqual(self.judged(mode, program, "--case", case), silent)
            with self.subTest(case=case, mode=mode, broken=True):
                code, found = self.judged(mode, program, "--case", case, "--broken")
                if case in UNPROVEN[mode]:
                    self.assertEqual((code, found), silent)
                    continue
                self.assertEqual((code, len(found)), (1 if mode == "trajectory" else code, 1), found)
                self.assertRegex(found[0], "^MPT040 (weights are updated in .* without an fp32 master|the fp32 copies)")

    def test_masters_with_a_twin(self):
        self.check_masters("trajectory", MASTERS if LONG else ("flat-buffer", "clones", "positions"))

    def test_masters_without_a_twin(self):
        self.check_masters("watch", MASTERS if LONG else ("post-hook",))

    def test_scalars(self):
        program = os.path.join(FOLDER, "scalars.py")
        for case in ("counter", "average", "norm", "logged-norm") if LONG else ("average", "norm", "logged-norm"):
            with self.subTest(case=case):
                self.assertEqual(self.judged("trajectory", program, "--case", case), (0, []))
            with self.subTest(case=case, broken=True):
                code, found = self.judged("trajectory", program, "--case", case, "--broken")
                # A norm that nothing reads is a warning, with which the gate passes.
                self.assertEqual(code, case != "logged-norm", found)
                self.assertIn("MPT041", [f[:6] for f in found])

    def test_counters_without_a_twin(self):
        program = os.path.join(FOLDER, "scalars.py")
        self.assertEqual(self.judged("watch", program, "--case", "counter"), (0, []))
        for case in ("counter", "counter-anew") if LONG else ("counter-anew",):
            with self.subTest(case=case):
                code, found = self.judged("watch", program, "--case", case, "--broken")
                self.assertEqual((code, [f[:6] for f in found]), (1, ["MPT041"]), found)
                self.assertIn("stays at 256 in every sampled step from 256 on", found[0])

    def test_a_number_that_changes_nothing_and_is_not_meant_to(self):
        for mode in ("watch", "trajectory") if LONG else ("trajectory",):
            with self.subTest(mode=mode):
                self.assertEqual(self.judged(mode, os.path.join(FOLDER, "scalars.py"), "--case", "epsilon", "--broken"),
                                 (0, []))

    def test_fp32_weights_that_are_rounded_by_hand(self):
        program = os.path.join(FOLDER, "rounded.py")
        formats = {"assigned": "bf16", "copied": "fp16", "working-copy": "bf16"}
        for case in (*formats, "checkpoint", "quantised", "signs") if LONG else ("assigned", "quantised"):
            for mode in ("trajectory", "step") if LONG else ("trajectory",):
                with self.subTest(case=case, mode=mode):
                    self.assertEqual(self.judged(mode, program, "--case", case), (0, []))
        for case, low in formats.items() if LONG else (("copied", "fp16"),):
            for mode in ("trajectory", "step") if LONG else ("step",):
                with self.subTest(case=case, mode=mode, broken=True):
                    status, found = self.judged(mode, program, "--case", case, "--broken")
                    self.assertEqual((status, [f[:6] for f in found]), (1, ["MPT028"]), found)
                    self.assertIn(f"holds only values of {low} whenever a step begins", found[0])

    def test_watch_claims_only_what_it_measured(self):
        """An initialisation that draws -inf and clamps it, and updates that are rounded stochastically."""
        self.assertEqual(self.judged("watch", self.script(HEALTHY)), (0, []))
        code, found = self.judged("watch", self.script(HEALTHY.replace("noise.clamp_(-2, 2)", "")))
        self.assertEqual((code, [f[:6] for f in found]), (1, ["MPT001"]), found)

    def test_updates_of_another_length(self):
        """An optimizer whose steps pass through fp16, where the small ones are 0; the gradients agree."""
        self.assertEqual(self.judged("trajectory", self.script(STEPS.format(store="float32"))), (0, []))
        code, found = self.judged("trajectory", self.script(STEPS.format(store="float16")))
        self.assertEqual((code, [f[:6] for f in found]), (1, ["MPT027"]), found)
        self.assertRegex(found[0], r"moves \S+ (less than )?[0-9.]+ times as far as in fp32, although the gradients")

    def test_a_measured_noise_floor(self):
        """The same training, in whose second recording the twin is changed by one rounding."""
        program = self.script(STEPS.format(store="float32"))
        runs = [os.path.join(self.top, name) for name in ("run", "noise")]
        for run, words in zip(runs, ([], ["--twin-noise"])):
            command = [TRACE, "-q", "--mode", "trajectory", "--no-build", "-o", run, *words, "--", PYTHON, program]
            subprocess.run(command, env=self.env, cwd=self.top, check=True, timeout=300, stdout=subprocess.DEVNULL)
        losses = []
        for run in runs:
            done = subprocess.run([TRACE, "report", run, "--json", "-"], capture_output=True, check=True)
            losses.append([step["ranks"][0] for step in json.loads(done.stdout)["steps"]])
        real, disturbed = losses
        self.assertEqual([r["loss"] for r in real], [r["loss"] for r in disturbed], "the program is not changed")
        self.assertEqual(real[0]["twin_loss"], disturbed[0]["twin_loss"])
        self.assertNotEqual(real[1]["twin_loss"], disturbed[1]["twin_loss"])
        self.assertAlmostEqual(real[1]["twin_loss"], disturbed[1]["twin_loss"], delta=0.05 * abs(real[1]["twin_loss"]))
        done = subprocess.run([TRACE, "report", *runs[:1], "--noise", runs[1]], capture_output=True, text=True)
        self.assertRegex(done.stdout, r"; one rounding changes the twin's by [0-9.]+ %")
        done = subprocess.run([TRACE, "gate", runs[0], "--noise", runs[0]], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("has the same twin", done.stderr)

    def test_a_declaration_that_changes_nothing(self):
        _, found = self.judged("watch", self.script(DECLARED))
        self.assertEqual([f[:6] for f in found], ["MPT043"], found)
        self.assertEqual(self.judged("watch", self.script(DECLARED.replace("x.sum()", "(x @ x).sum()"))), (0, []))

    def test_what_is_stored(self):
        """A checkpoint after the last step is seen, and 8-bit state is not fp32."""
        self.judged("watch", self.script(STORED))
        report = subprocess.run([TRACE, "report", os.path.join(self.top, "run"), "--json", "-"], capture_output=True,
                                text=True, cwd=self.top)
        checks = {c["sentence"]: c["answer"] for c in json.loads(report.stdout)["checks"]}
        self.assertEqual(checks["checkpoints are fp32"], "no")
        self.assertEqual(checks["optimizer state is fp32"], "no")


# Momentum whose steps pass through a format.
STEPS = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 16))
class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, dict(lr=1e-3))
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            average = self.state[p].setdefault("average", torch.zeros_like(p))
            average.mul_(0.9).add_(p.grad)
            p.sub_((5e-7 * average).to(torch.{store}).float())
optimizer = Momentum(model.parameters())
data = torch.Generator().manual_seed(1)
for step in range(6):
    optimizer.zero_grad()
    x = torch.randn(32, 16, generator=data)
    with torch.autocast("cpu", torch.bfloat16):
        loss = (model(x).float() - x.roll(1, 1)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""

HEALTHY = """
import torch
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(64, 64).bfloat16())
noise = 2 * torch.rand(64, 64) - 1
noise[0, 0] = -1
noise.erfinv_().mul_(0.5).add_(0.1)
noise.clamp_(-2, 2)

class Stochastic(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            wide = p.float() - 1e-5 * p.grad.float().sign()
            bits = wide.view(torch.int32) + torch.randint(0, 1 << 16, wide.shape, dtype=torch.int32)
            p.copy_((bits & -65536).view(torch.float32))

optimizer = Stochastic([weight], {})
for _ in range(9):
    optimizer.zero_grad()
    loss = ((torch.randn(8, 64).bfloat16() @ weight).float() @ noise).square().mean()
    loss.backward()
    optimizer.step()
"""
DECLARED = """
import torch
weight = torch.nn.Parameter(torch.randn(64))
optimizer = torch.optim.SGD([weight], lr=1e-3)
for _ in range(5):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = weight.view(8, 8) * 2
        loss = x.sum().float()
    loss.backward()
    optimizer.step()
"""
STORED = """
import torch

class Bytes(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                state.update(codes=torch.zeros(64, dtype=torch.uint8), scale=torch.ones(8))
            p.sub_(p.grad, alpha=1e-3)

model = torch.nn.Linear(8, 8)
optimizer = Bytes(model.parameters(), {})
for _ in range(3):
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
torch.save(model.bfloat16().state_dict(), "last.pt")
"""

if __name__ == "__main__":
    unittest.main()
