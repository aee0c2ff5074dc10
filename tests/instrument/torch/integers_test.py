"""What 16 bits cannot hold, found without a twin too: positions, sums of gradients, totals, averages of weights; and
gradients that are clipped with their loss scale.

    MP_TRACE=build/release/bin/mp-trace integers_test.py [PYTHON]
"""
import json
import os
import shutil
import subprocess
import unittest

from traced import LONG, PYTHON, TRACE, TracedTest, needs_torch

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
# The same under DDP, whose ranks add up their own gradients before the last backward pass sums them over the ranks.
RANKS = """
import contextlib, sys, torch, torch.distributed as dist
def train(rank, rendezvous, each):
    torch.manual_seed(rank)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=2)
    layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16)).bfloat16()
    model = torch.nn.parallel.DistributedDataParallel(layers)
    masters = [p.detach().float() for p in layers.parameters()]
    optimizer = torch.optim.SGD(masters, 0.1)
    for i in range(3):
        for master in masters: master.grad = torch.zeros_like(master)
        for k in range(32):
            x = torch.randn(8, 16)
            with contextlib.nullcontext() if each or k == 31 else model.no_sync():
                ((model(x.bfloat16()).float() - x.roll(1, 1)).square().mean() / 32).backward()
            if k == 31 or each:
                for master, p in zip(masters, layers.parameters()):
                    master.grad += p.grad
                    p.grad = None
        optimizer.step()
        with torch.no_grad():
            for master, p in zip(masters, layers.parameters()): p.copy_(master)
    dist.destroy_process_group()
if __name__ == "__main__":
    import os, tempfile
    rendezvous = os.path.join(tempfile.mkdtemp(dir="."), "rendezvous")
    torch.multiprocessing.spawn(train, (os.path.abspath(rendezvous), EACH), nprocs=2)
"""
# KEPT: what the program keeps from step to step.
KEPT = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
average = [p.detach().clone().DTYPE() for p in model.parameters()]
total = torch.zeros(()).DTYPE()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for i in range(STEPS):
    x = torch.randn(8, 16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = (model(x).float() - x.roll(1, 1)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        KEPT
"""
AVERAGES = ["for a, p in zip(average, model.parameters()): a.mul_(0.999).add_(p.DTYPE(), alpha=0.001)",
            "torch._foreach_lerp_(average, [p.DTYPE() for p in model.parameters()], 0.001)"]
TOTALS = ["total += loss", "total = total + loss.DTYPE()", "total = loss.DTYPE() + total"]
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
        for mode in ("watch", "local", "trajectory"):
            for program in (MICRO, RANKS) if LONG or mode == "trajectory" else (MICRO,):
                with self.subTest(mode=mode, ranks=program is RANKS):
                    added = program.replace("EACH", "False")
                    self.assertEqual(self.judged(mode, added), (0, [("MPT012", "warning")]))
                    self.assertEqual(self.judged(mode, program.replace("EACH", "True")), (0, []))

    def kept(self, mode, kept, dtype, steps):
        program = KEPT.replace("KEPT", kept).replace("DTYPE", dtype).replace("STEPS", str(steps))
        return self.judged(mode, program)

    def test_averages_of_weights(self):
        for kept in AVERAGES if LONG else AVERAGES[1:]:
            with self.subTest(kept=kept):
                self.assertEqual(self.kept("watch", kept, "bfloat16", 10), (0, [("MPT040", "warning")]))
                self.assertEqual(self.kept("trajectory", kept, "bfloat16", 10), (1, [("MPT040", "error")]))
                self.assertEqual(self.kept("watch", kept.replace("0.001", "0.2"), "bfloat16", 10), (0, []))
                self.assertEqual(self.kept("watch", kept, "float", 10), (0, []))

    def test_totals_of_single_values(self):
        for mode in ("watch", "trajectory"):
            for kept in TOTALS if LONG else TOTALS[:2]:
                with self.subTest(mode=mode, kept=kept):
                    self.assertEqual(self.kept(mode, kept, "bfloat16", 200), (0, [("MPT012", "warning")]))
            self.assertEqual(self.kept(mode, TOTALS[0], "float", 200), (0, []))
            short = "total = total + loss.DTYPE() if i % 15 else loss.DTYPE()"
            self.assertEqual(self.kept(mode, short, "bfloat16", 100), (0, []))

    def test_gradients_that_are_clipped_with_their_loss_scale(self):
        self.assertEqual(self.judged("local", CLIPPED.replace("BEFORE", "pass")), (1, [("MPT062", "error")]))
        self.assertEqual(self.judged("local", CLIPPED.replace("BEFORE", "scaler.unscale_(optimizer)")), (0, []))


if __name__ == "__main__":
    unittest.main()
