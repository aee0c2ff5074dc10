"""What 16 bits cannot hold, found without a twin too: positions, sums of gradients, clipped gradients with their scale.

    MP_TRACE=build/release/bin/mp-trace integers_test.py [PYTHON]
"""
import json
import os
import shutil
import subprocess
import unittest

from traced import PYTHON, TRACE, TracedTest, needs_torch

POSITIONS = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
class Rotary(torch.nn.Module):
    def forward(self, x):
        frequencies = 10000 ** (-torch.arange(0, 16, 2) / 16)
        angles = torch.outer(POSITIONS, frequencies)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary, self.fc = Rotary(), torch.nn.Linear(16, 16)
    def forward(self, x):
        cosines, sines = self.rotary(x)
        a, b = self.fc(x).chunk(2, -1)
        return torch.cat((a * cosines - b * sines, a * sines + b * cosines), -1)
model = Net().bfloat16()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for i in range(3):
    x = torch.randn(4, 384, 16).bfloat16()
    (model(x).float() - x.roll(1, 1)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MICRO = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16)).bfloat16()
masters = [p.detach().float() for p in model.parameters()]
for master in masters: master.grad = torch.zeros_like(master)
optimizer = torch.optim.SGD(masters, 0.1)
for i in range(4):
    for k in range(32):
        x = torch.randn(8, 16)
        ((model(x.bfloat16()).float() - x.roll(1, 1)).square().mean() / 32).backward()
        if k == 31 or EACH:
            for master, p in zip(masters, model.parameters()):
                master.grad += p.grad
                p.grad = None
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    with torch.no_grad():
        for master, p in zip(masters, model.parameters()): p.copy_(master)
"""
CLIPPED = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for i in range(4):
    x = torch.randn(8, 16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = (model(x).float() - x.roll(1, 1)).square().mean()
    scaler.scale(loss).backward()
    BEFORE
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
"""


@needs_torch(2)
class Integers(TracedTest):
    def judged(self, mode, program):
        """The gate's exit status and what is worse than a note, as (rule, severity, layer)."""
        run = os.path.join(self.top, "run")
        shutil.rmtree(run, ignore_errors=True)
        command = [TRACE, "-q", "--mode", mode, "--no-build", "-o", run, "--", PYTHON, self.script(program)]
        subprocess.run(command, check=True, capture_output=True, env=self.env, cwd=self.top, timeout=300)
        gate = subprocess.run([TRACE, "gate", run, "--output", "json"], capture_output=True, text=True, cwd=self.top)
        found = [f for rule in json.loads(gate.stdout)["rules"] for f in rule["findings"]]
        return gate.returncode, [(f["rule"], f["severity"]) for f in found if f["severity"] != "note"]

    def test_positions(self):
        positions = {"torch.arange(x.shape[1], dtype=x.dtype)": True,
                     "torch.arange(x.shape[1]).to(x.dtype).float()": True,
                     "torch.arange(x.shape[1]).float()": False}
        for made, broken in positions.items():
            program = POSITIONS.replace("POSITIONS", made)
            for mode in ("watch", "trajectory"):
                with self.subTest(made=made, mode=mode):
                    _, found = self.judged(mode, program)
                    named = [severity for rule, severity in found if rule == "MPT015"]
                    self.assertEqual(named, broken * ["warning" if mode == "watch" else "error"], found)

    def test_positions_that_bf16_can_count(self):
        short = POSITIONS.replace("384", "256").replace("POSITIONS", "torch.arange(x.shape[1], dtype=x.dtype)")
        self.assertNotIn("MPT015", [rule for rule, _ in self.judged("watch", short)[1]])

    def test_gradients_of_micro_batches(self):
        for mode in ("watch", "local"):
            with self.subTest(mode=mode):
                self.assertEqual(self.judged(mode, MICRO.replace("EACH", "False")), (0, [("MPT012", "warning")]))
                self.assertEqual(self.judged(mode, MICRO.replace("EACH", "True")), (0, []))

    def test_gradients_that_are_clipped_with_their_loss_scale(self):
        self.assertEqual(self.judged("local", CLIPPED.replace("BEFORE", "pass")), (1, [("MPT062", "error")]))
        self.assertEqual(self.judged("local", CLIPPED.replace("BEFORE", "scaler.unscale_(optimizer)")), (0, []))


if __name__ == "__main__":
    unittest.main()
