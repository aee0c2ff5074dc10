"""What the adapter measures, on programs of a few lines whose figures are known.

    MP_TRACE=build/release/bin/mp-trace measure_test.py [PYTHON]      PYTHON has torch; default .venv's
"""
import json
import os
import shutil
import subprocess
import unittest

from traced import PYTHON, TRACE, TracedTest, has_torch, needs_torch

HEAD = """
import os, sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
BF16, FP16 = torch.bfloat16, torch.float16
"""
TWO_STEPS = """
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
for step in range(2):
    net(torch.rand(64, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MODEL = HEAD + """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)
    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
TRAIN = MODEL + """
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    with torch.autocast("cpu", dtype=BF16):
        y = model(torch.randn(128, 64))
    loss = y.float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# A step without a model: `body` runs in each of two steps.
BARE = HEAD + """
w = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([w], lr=0.1)
mask = torch.ones(8, 8, dtype=torch.bool).tril()
def body(w):
{body}
for step in range(2):
    y = body(w)
    loss = w.square().sum() if y is None else y
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# Whether this torch's products of bf16 round more than once: torch 1.13 without AVX-512.
ROUNDS_OFTEN = """
import torch
torch.manual_seed(0)
a, b = torch.randn(64, 64).bfloat16(), torch.randn(64, 64).bfloat16()
exact = a.double() @ b.double()
print((torch.mm(a, b).double() - exact).norm() > 1.1 * (exact.float().bfloat16().double() - exact).norm())
"""


@needs_torch()
class Measured(TracedTest):
    trained = None  # the report of TRAIN

    def train(self):
        if not self.trained:
            Measured.trained = self.trace(TRAIN)
        return self.trained

    def trace(self, text, *options):
        self.script(text)
        shutil.rmtree(os.path.join(self.top, "run"), ignore_errors=True)
        mode = () if "--mode" in options else ("--mode", "trajectory")
        done = subprocess.run([TRACE, *mode, *options, "--no-build", "-o", "run", "--", PYTHON, "train.py"],
                              capture_output=True, text=True, env=self.env, cwd=self.top, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stderr = done.stderr
        report = subprocess.run([TRACE, "report", "run", "--json", "-"], capture_output=True, env=self.env,
                                cwd=self.top, timeout=60)
        self.assertEqual(report.returncode, 0, report.stderr)
        return json.loads(report.stdout)

    def bare(self, *lines, options=()):
        return self.trace(BARE.format(body="\n".join("    " + line for line in lines)), *options)

    @staticmethod
    def ops(report, op, phase="forward", layer=None):
        return [entry for place in report["layers"] for entry in place["ops"]
                if entry["op"] == op and place["phase"] == phase and layer in (None, place["layer"])]

    def one(self, *question, **more):
        found = self.ops(*question, **more)
        self.assertEqual(len(found), 1, (question[1:], more))
        return found[0]

    def rules(self, report):
        return [finding["rule"] for finding in report["findings"]]

    # ---- LOC, PROP, CUM; layers and places

    def test_a_matrix_product_introduces_one_rounding(self):
        report = self.train()
        for layer in ("blocks.0.up", "blocks.0.down", "blocks.1.up", "blocks.1.down"):
            product = self.one(report, "aten::addmm", layer=layer)
            self.assertEqual(product["dtype"], "bf16")
            self.assertAlmostEqual(product["introduced_phi"], 1, delta=0.05)
            self.assertGreaterEqual(product["total_phi"], 0.9 * product["introduced_phi"])
        answer = subprocess.run([PYTHON, "-c", ROUNDS_OFTEN], capture_output=True, text=True, timeout=200).stdout
        often = "True" in answer
        self.assertEqual([(f["rule"], f["op"]) for f in report["findings"]], [("MPT010", "aten::mm")] if often else [])

    def test_inherited_and_introduced_errors_add_up(self):
        report = self.train()
        for layer in ("blocks.0.down", "blocks.1.up"):
            place = next(p for p in report["layers"] if p["layer"] == layer and p["phase"] == "forward")
            whole = (place["introduced_phi"] ** 2 + place["inherited_phi"] ** 2) ** 0.5
            self.assertAlmostEqual(place["total_phi"] / whole, 1, delta=0.05)

    def test_layers_phases_and_lines(self):
        report = self.train()
        line = 1 + TRAIN.splitlines().index("        return x + self.down(torch.nn.functional.gelu(self.up(x)))")
        gelu = self.one(report, "aten::gelu", layer="blocks.1")
        self.assertEqual(gelu["source"], f"train.py:{line}")
        backward = self.one(report, "aten::gelu_backward", phase="backward", layer="blocks.1")
        self.assertEqual(backward["source"], f"train.py:{line}")
        stepping = {p["layer"] for p in report["layers"] if p["phase"] == "optimizer"}
        self.assertIn("(optimizer)", stepping)
        self.assertLessEqual(stepping, {"(optimizer)", "(update)"})
        losses = [p for p in report["layers"] if p["layer"] == "(loss)"]
        self.assertEqual({p["phase"] for p in losses}, {"forward", "backward"})

    def test_the_line_of_an_op_is_that_of_its_worst_call(self):
        report = self.trace(HEAD + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.scale = torch.nn.Linear(64, 64), torch.nn.Parameter(torch.tensor(1.15))
    def forward(self, x):
        x = x.float() * 1.7  # in fp32
        x = self.fc(x)
        x = (x.to(BF16) * 1.7).to(torch.float32).square()  # one rounding
        x = self.scale * x.to(BF16)  # rounds the number too
        return x.tanh()  # whose backward it is
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    net(torch.randn(64, 64)).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
        lines = {}
        with open(os.path.join(self.top, "train.py"), encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                lines[line.partition("  # ")[2].strip()] = f"train.py:{number}"
        found = {m["dtype"]: m["source"] for m in self.ops(report, "aten::mul", layer="Net")}
        self.assertEqual(found["fp32"], lines["in fp32"])
        # The kernel of torch 1.13 rounds the result alone.
        worst = ("rounds the number too",) if has_torch(2) else ("one rounding", "rounds the number too")
        self.assertIn(found["bf16"], [lines[of] for of in worst])
        backward = self.one(report, "aten::tanh_backward", phase="backward", layer="Net")
        self.assertEqual(backward["source"], lines["whose backward it is"])

    def test_an_op_in_place_hands_on_the_error_of_its_target(self):
        report = self.trace(HEAD + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(64, 64)
    def forward(self, x):
        y = (x.to(BF16) * 777).cos()
        y[torch.arange(8)] = x[:8].to(BF16)
        return self.fc(y.float())
""" + TWO_STEPS)
        messages = [f["message"] for f in report["findings"] if f["rule"] == "MPT013"]
        self.assertEqual([m.partition(" of ")[0] for m in messages], ["cos"], messages)
        self.assertNotIn("index_put", messages[0])

    def test_arithmetic_in_place_that_cancels_is_judged_as_a_new_result_is(self):
        report = self.trace(HEAD + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.far = torch.nn.Linear(64, 64)
        self.near = torch.nn.Linear(64, 64)
    def forward(self, x):
        a = (x + 300).to(BF16)
        a -= 300                                # the two are nearly equal
        b = (x * 3).to(BF16)
        b.sub_(torch.tensor(1.0))               # they are not
        return self.far(a.float()) + self.near(b.float())
""" + TWO_STEPS)
        messages = [f["message"] for f in report["findings"] if f["rule"] == "MPT013"]
        self.assertEqual([m.partition(" of ")[0] for m in messages], ["sub"], messages)
        self.assertNotIn("so does", messages[0])

    def test_an_op_in_fp32_or_fp64_may_amplify_a_rounding_before_it(self):
        report = self.trace(HEAD + """
class Time(torch.nn.Module):
    def forward(self, t):
        return t.cos().float()
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.in_fp32, self.in_fp64, self.exact, self.slow = Time(), Time(), Time(), Time()
        self.fc = torch.nn.Linear(64, 64)
    def forward(self, x):
        t = (x * 777).to(BF16)
        rounded = self.in_fp32(t.float()) + self.in_fp64(t.double()) + self.slow(t.float() / 777)
        small = (1 + x / 64).to(BF16).float() - 1  # beside a larger value
        return self.fc(rounded + self.exact(x * 777) + small)
""" + TWO_STEPS)
        found = sorted((f["layer"], f["op"]) for f in report["findings"] if f["rule"] == "MPT013")
        self.assertEqual(found, [("in_fp32", "aten::cos"), ("in_fp64", "aten::cos")])

    def test_the_mean_that_a_norm_returns_is_not_judged(self):
        report = self.trace(HEAD + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(64), torch.nn.LayerNorm(64)
        self.fc = torch.nn.Linear(64, 64)
    def forward(self, x):
        normalised = self.first(x.repeat(8, 1)).to(BF16)
        return self.fc(self.second(normalised.float()))
""" + TWO_STEPS)
        self.assertEqual([f for f in report["findings"] if f["rule"] == "MPT013"], [])

    # ---- what is not finite

    def test_an_overflow_is_its_ops_and_a_mask_is_nobodys(self):
        report = self.bare("scores = (w.sum() * torch.ones(8, 8)).masked_fill(~mask, float('-inf'))",
                           "weights = scores.softmax(-1)",
                           "large = (weights.to(FP16) * 60000).mul(2)",
                           "return large.float().sum().clamp(max=1) + w.sum()")
        first = report["first_overflow"]
        self.assertEqual((first["op"], first["phase"], first["step"], first["dtype"]),
                         ("aten::mul", "forward", 0, "fp16"))
        self.assertEqual([f["op"] for f in report["findings"] if f["rule"] == "MPT001"], ["aten::mul"])

    def test_what_was_not_finite_before_is_not_the_ops_doing(self):
        report = self.bare("bad = torch.full((64,), float('inf'), dtype=FP16)", "bad.div_(2)", "bad.mul_(0.5)")
        self.assertNotIn("MPT001", self.rules(report))

    def test_constants_are_chosen_and_positions_are_computed(self):
        # torch refuses a constant that half cannot hold: an infinite bound, or a NaN, is what the caller wanted.
        # torch 1.13 clamps bf16 only.
        report = self.bare("torch.ones(64, dtype=BF16).clamp(min=float('nan'))",
                           "torch.zeros(64, dtype=FP16).scatter(0, torch.arange(8), float('inf'))")
        self.assertEqual(self.rules(report), [])
        # It rounds the positions of arange. Step 3 is not sampled: only ops that may overflow are looked at.
        report = self.trace(HEAD + """
w = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(5):
    last = 70000 if step == 3 else 100
    torch.arange(0, last, 10, dtype=FP16)
    w.square().sum().backward()
    optimizer.step()
""")
        first = report["first_overflow"]
        self.assertEqual((first["op"], first["step"]), ("aten::arange", 3))

    # ---- sums that absorb addends

    def test_a_running_sum_swallows_in_bf16_only(self):
        body = ["total = torch.zeros(())", "for _ in range(600):", "    total = total + torch.ones(())"]
        narrow = [line.replace("(())", "((), dtype=BF16)") for line in body]
        for place in ("()", "(3,)"):  # a number, and a vector
            shaped = [line.replace("(()", f"({place}") for line in narrow]
            share = self.one(self.bare(*shaped), "aten::add", phase="data")["absorbed"]
            self.assertAlmostEqual(share, (600 - 256) / 600, delta=0.01)  # 257 is no bf16
        self.assertIsNone(self.one(self.bare(*body), "aten::add", phase="data")["absorbed"])

    # ---- what does not move

    def test_weights_below_half_an_ulp_stand_still(self):
        text = TRAIN.replace("model = Model()", "model = Model().to(BF16)").replace("lr=1e-3", "lr=1e-6")
        text = text.replace("torch.randn(128, 64)", "torch.randn(128, 64).to(BF16)")
        report = self.trace(text)
        first = report["findings"][0]
        self.assertEqual((first["rule"], first["phase"]), ("MPT040", "optimizer"))
        self.assertNotIn("MPT040", self.rules(self.train()))

    # ---- reductions

    def test_a_reduction_is_compared_with_the_fp32_sum(self):
        text = HEAD + """
import torch.distributed as dist
import torch.multiprocessing as mp
def rank_of(rank, where):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), "2"
    dist.init_process_group("gloo", init_method="file://" + where, rank=rank, world_size=2)
    w = torch.nn.Parameter(torch.randn(4096, generator=torch.Generator().manual_seed(rank)))
    optimizer = torch.optim.SGD([w], lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        w.square().sum().backward()
        wire = w.grad.to(FP16)
        dist.all_reduce(wire)
        optimizer.step()
    dist.barrier()
if __name__ == "__main__":
    mp.spawn(rank_of, (os.path.join(os.getcwd(), "store"),), 2)
"""
        report = self.trace(text)
        reduction = next(c for c in report["collectives"] if c["op"] == "all_reduce" and c["dtype"] == "fp16")
        self.assertAlmostEqual(reduction["relative_l2"], 2.08e-4, delta=2e-5)  # two addends: one rounding
        self.assertEqual(reduction["made_nonfinite"], 0)

    # ---- dtypes

    def test_the_dtype_map(self):
        save = "import copy\ntorch.save(copy.deepcopy(model).to(BF16).state_dict(), 'model.pt')\n"
        report = self.trace(TRAIN + save + "model(torch.randn(4, 64)).sum().backward()\noptimizer.step()\n")
        places = {(p["role"], p["layer"], p["phase"], p["dtype"]) for p in report["dtype_map"]}
        for place in (("parameter", "blocks.0.up", "unknown", "fp32"),
                      ("optimizer_state", "blocks.0.up", "unknown", "fp32"),
                      ("gradient", "blocks.0.up", "unknown", "fp32"),
                      ("activation", "blocks.0.up", "forward", "bf16"),
                      ("checkpoint", "model.pt", "unknown", "bf16")):
            self.assertIn(place, places)
        self.assertIn("autocast:cpu=bf16", report["policies"])

    # ---- the last lines of a run

    def test_the_summary_at_the_end(self):
        script = HEAD + """
import signal
seen = []
signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))
import atexit
atexit.register(lambda: os.write(1, f"{len(seen)} children".encode()))
""" + TRAIN[len(HEAD):]
        self.trace(script)
        lines = self.stderr.splitlines()
        start = next(i for i, line in enumerate(lines) if "3 steps" in line)
        self.assertLessEqual(len(lines) - start, 8)
        self.assertTrue(all(line.startswith("mp-trace:") for line in lines), lines)
        self.assertIn("mp-trace report", lines[-1])
        self.trace(script, "--quiet")
        self.assertEqual(self.stderr, "")


if __name__ == "__main__":
    unittest.main()
