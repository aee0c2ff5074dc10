"""Casts, which an fp32 run does not have: the twin adds gradients as that run does, and reads weights, not old copies.

    MP_TRACE=build/release/bin/mp-trace casts_test.py PYTHON
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "truth"))
sys.path.append(HERE)
import compare  # noqa: E402
import runs  # noqa: E402
from traced import LONG, PYTHON, TRACE, torch_version  # noqa: E402

# Prints the values of a file of torch.save.
SHOW = """
import sys, torch
v = torch.load(sys.argv[1])
for k, t in v.items() if isinstance(v, dict) else enumerate(v):
    print(k, t.contiguous().flatten().numpy().tobytes().hex())
"""

# Each function gets a leaf w and the low dtype, and leaves a gradient at w. The backward of `sums` adds three gradients
# to x: one directly, and two through a cast.
PROGRAM = """
import sys, threading, torch
torch.set_num_threads(1)
low = torch.float32 if sys.argv[1] == "fp32" else torch.bfloat16
NAMES = sys.argv[3:]

def sums(x):
    h = x.float()
    return x + (h.sin() + h.cos()).to(x.dtype)

def loss(x):
    return sums(x).float().square().sum()

def plain(w): loss(w.to(low)).backward()
def root(w): sums(w.to(low)).backward(torch.linspace(1, 2, 512).to(low))
def grad(w): w.grad, = torch.autograd.grad(loss(w.to(low)), w)
def grad_inside(w):
    x = (w * 1.5).to(low)
    w.grad = torch.autograd.grad(loss(x), x)[0].float()
def retained(w):
    l = loss(w.to(low))
    l.backward(retain_graph=True)
    l.backward()
def hook(w):
    x = (w * 1.5).to(low)
    x.register_hook(lambda g: g * 0.75)
    loss(x).backward()
def hook_on_cast(w):
    x = (w * 1.5).to(low)
    h = x.float()
    h.register_hook(lambda g: None)
    (x + (h.sin() + h.cos()).to(low)).float().square().sum().backward()
def double(w):
    l = loss(w.to(low))
    g, = torch.autograd.grad(l, w, create_graph=True)
    (l + g.square().sum()).backward()
def weight(w):
    a = w.to(low)
    ((a.sin() + a.cos() + a.exp()).float() + w * 3).square().sum().backward()
def attention(w):
    x = w.to(low).view(1, 4, 16, 8)
    torch.bmm(torch.bmm(x.float()[0], x.float()[0].mT).softmax(-1), x.float()[0]).square().sum().backward()
def thrown(w):
    x = (w * 1).to(low)
    x.register_hook(lambda g: 1 / 0)
    try:
        loss(x).backward()
    except ZeroDivisionError:
        pass
    w.grad = None
    loss(w.to(low)).backward()
def linear_of_slice(w):
    weight, bias = w[:256].view(16, 16).to(low), w[256:272].to(low)
    x = torch.linspace(0, 1, 2560).view(40, 4, 16)[:, :2]
    y = torch.nn.functional.linear(x.to(low), weight, bias)
    rows = torch.cat([y.float(), w.view(1, 32, 16).expand(40, 32, 16)], 1)
    (rows.sin() * torch.linspace(1, 2, 34)[None, :, None]).sum().backward()
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            y = ctx.saved_tensors[0].detach().requires_grad_()
            sums(y).backward(g)
        return y.grad
def nested(w): Inner.apply(sums(w.to(low))).float().square().sum().backward()
def nested_in_hook(w):
    x = (w * 1.5).to(low)
    l = loss(x)
    seen = []
    def again(g):
        seen.append(1)
        return g + torch.autograd.grad(l, x, retain_graph=True)[0] if len(seen) == 1 else g
    x.register_hook(again)
    l.backward(retain_graph=True)
def threads(w):
    x = [(w * k).to(low) for k in (1, 2)]
    work = [threading.Thread(target=lambda y=y: loss(y).backward()) for y in x]
    for t in work:
        t.start()
        t.join()
def freed(w):
    import gc, weakref
    x = (w * 1.5).to(low)
    class Note: pass
    note = Note()
    x.grad_fn.metadata["note"] = note
    gone = weakref.ref(note)
    loss(x).backward()
    del x, note
    gc.collect()
    assert gone() is None, "the graph is still alive"

# All optimizers are made before the first step: one made later would begin another training.
leaves = [torch.randn(512, generator=torch.Generator().manual_seed(1)).requires_grad_() for _ in NAMES]
optimizers = [torch.optim.SGD([w], lr=0.1) for w in leaves]
for name, w, optimizer in zip(NAMES, leaves, optimizers):
    globals()[name](w)
    optimizer.step()
torch.save({n: w.grad for n, w in zip(NAMES, leaves)}, sys.argv[2])
"""
EXACT = ["plain", "root", "grad", "grad_inside", "retained", "hook", "double", "weight", "attention", "thrown",
         "nested", "threads", "freed"]

LOOP = """
import contextlib, sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(8, 16)
region = torch.autocast("cpu", dtype=torch.bfloat16) if sys.argv[1] == "low" else contextlib.nullcontext()
where = sys.argv[2]
with region if where == "outside" else contextlib.nullcontext():
    for step in range(4):
        optimizer.zero_grad()
        with region if where == "inside" else contextlib.nullcontext():
            loss = (model(x) - x).float().square().mean()
        loss.backward()
        optimizer.step()
torch.save([p.detach() for p in model.parameters()], sys.argv[3])
"""

# Parameters of the dtypes `DTYPES`, whose gradients are clipped together.
CLIPPED = """
import torch
low = torch.bfloat16
weights = [torch.nn.Parameter(torch.linspace(-1, 1, 40).to(dtype)) for dtype in (DTYPES)]
optimizer = torch.optim.SGD(weights, lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    sum(w.float().square().sum() for w in weights).backward()
    torch.nn.utils.clip_grad_norm_(weights, 0.1)
    optimizer.step()
"""

BRANCH = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(1, 2)).sum().backward()
    if torch.tensor([1.001]).bfloat16() > LIMIT:  # 1 in bf16
        optimizer.param_groups[0]["lr"] = 0.2
    optimizer.step()
"""

RECURRENT = """
import torch
layer = torch.nn.KIND(8, 8).to(torch.DTYPE)
layer(torch.randn(3, 2, 8, dtype=torch.DTYPE))[0].float().sum().backward()
torch.optim.SGD(layer.parameters(), lr=0.1).step()
"""


UNDER_AUTOCAST = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.rnn = torch.nn.Linear(8, 8), torch.nn.LSTM(8, 8)
    def forward(self, x):
        return self.rnn(self.fc(x))[0]
net = Net()
with torch.autocast("cpu", torch.float16, enabled=ENABLED):
    y = net(torch.randn(3, 2, 8))
y.float().sum().backward()
torch.optim.SGD(net.parameters(), lr=0.1).step()
"""


VERSION = torch_version(PYTHON)


@unittest.skipUnless(VERSION, f"skipped: {PYTHON} has no torch")
class Casts(unittest.TestCase):
    follows = VERSION >= 2

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="mp-casts-")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
        self.env["OMP_NUM_THREADS"] = "1"

    def run_in(self, *command):
        done = subprocess.run(command, cwd=self.top, env=self.env, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout

    def traced(self, *arguments):
        self.run_in(TRACE, "-q", "--mode", "trajectory", "--no-build", "-o", "run", "--save-twin", "twin",
                    "--save-real", "real", "--", PYTHON, *arguments)
        return json.loads(self.run_in(TRACE, "report", "run", "--json", "-"))

    def untraced(self, *arguments):
        """What a script prints, in a fork of a Python that has imported torch."""
        status, out, err = runs.run_forked([PYTHON, *arguments], self.top)
        self.assertEqual(status, 0, err[-2000:])
        return out.decode()

    def write(self, text, name="program.py"):
        path = os.path.join(self.top, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def read(self, name):
        """The values of a file of torch.save, as lists of bytes."""
        lines = self.untraced(self.write(SHOW, "show.py"), name).splitlines()
        return {k: bytes.fromhex(v) for k, v in (line.split() for line in lines)}

    def gradients(self, names):
        """The report, and which of the programs have another gradient in the twin than in fp32."""
        path = self.write(PROGRAM)
        self.untraced(path, "fp32", "fp32", *names)
        self.untraced(path, "low", "low", *names)
        report = self.traced(path, "low", "traced", *names)
        self.assertEqual(self.read("low"), self.read("traced"), "the traced run is not the untraced one")
        twin = compare.read_safetensors(os.path.join(self.top, "twin"))
        expected = self.read("fp32")
        wrong = [name for k, name in enumerate(names)
                 if twin[f"grad/optimizer{k}.group0.param0"][2] != expected[name]]
        return report, wrong

    def test_gradients_are_added_in_the_order_of_the_fp32_run(self):
        report, wrong = self.gradients(EXACT)
        if self.follows:
            self.assertEqual(wrong, [])
            self.assertEqual(report["coverage"]["regrouped"], 0)
        else:
            self.assertGreater(report["coverage"]["regrouped"], 0)
        self.assertEqual(report["coverage"]["relaid"], 0)

    def test_a_sum_that_is_not_followed_is_counted(self):
        names = ["hook_on_cast"]
        report, wrong = self.gradients(names)
        self.assertEqual(wrong, names)
        self.assertEqual(report["coverage"]["regrouped"], 1)
        self.assertIn("hook", json.dumps(report["coverage"]["not_observed"]))

    def test_a_cast_that_makes_another_layout_is_counted(self):
        report, wrong = self.gradients(["linear_of_slice"])
        self.assertEqual(wrong, ["linear_of_slice"])  # one rounding: torch takes another op
        self.assertEqual(report["coverage"]["relaid"], 2)  # forward and backward

    def test_norms_that_clipping_sorts_by_dtype_are_counted(self):
        for dtypes, regrouped in (("low, torch.float32, low", 2 if self.follows else 0), ("low, low, low", 0)):
            path = self.write(CLIPPED.replace("DTYPES", dtypes))
            shutil.rmtree(os.path.join(self.top, "run"), ignore_errors=True)
            report = self.traced(path, "low", "traced")
            self.assertEqual(report["coverage"]["regrouped"], regrouped, report["coverage"])
            if regrouped:
                self.assertIn("sorted by dtype", json.dumps(report["coverage"]["not_observed"]))

    def test_layers_that_are_other_ops_in_16_bits_are_noted(self):
        if not self.follows:
            self.skipTest("this torch trains no recurrent layer in fp16 on a CPU")
        kinds = (("LSTM", "float16", True), ("GRU", "float16", False), ("LSTM", "float32", False))
        for kind, dtype, noted in kinds if LONG else kinds[:2]:
            path = self.write(RECURRENT.replace("KIND", kind).replace("DTYPE", dtype))
            shutil.rmtree(os.path.join(self.top, "run"), ignore_errors=True)
            told = json.dumps(self.traced(path)["coverage"]["not_observed"])
            self.assertEqual(f"{kind}: torch computes an LSTM in {dtype} by other ops" in told, noted, told)
        for enabled in (True, False):
            path = self.write(UNDER_AUTOCAST.replace("ENABLED", str(enabled)))
            shutil.rmtree(os.path.join(self.top, "run"), ignore_errors=True)
            told = json.dumps(self.traced(path)["coverage"]["not_observed"])
            self.assertEqual("rnn: torch computes an LSTM in float16 by other ops" in told, enabled, told)

    def test_a_branch_that_the_twin_would_not_take_is_noted(self):
        for limit, noted in (("1.0005", True), ("1.5", False)):
            path = self.write(BRANCH.replace("LIMIT", limit))
            shutil.rmtree(os.path.join(self.top, "run"), ignore_errors=True)
            notes = [n["text"] for n in self.traced(path)["notes"] if n["kind"] == "decision"]
            self.assertEqual([text.split(": ")[0] for text in notes], ["aten::gt"] if noted else [])

    def test_a_backward_inside_a_hook_is_left_alone(self):
        self.gradients(["nested_in_hook"])

    def loop(self, where):
        path = self.write(LOOP)
        self.untraced(path, "fp32", where, "fp32")
        self.untraced(path, "low", where, "low")
        report = self.traced(path, "low", where, "traced")
        self.assertEqual(self.read("low"), self.read("traced"))
        twin = compare.read_safetensors(os.path.join(self.top, "twin"))
        for name, (k, value) in zip(["0.weight", "0.bias", "2.weight", "2.bias"], self.read("fp32").items()):
            self.assertEqual(twin[name][2], value, name)
        return [f for f in report["findings"] if f["rule"] == "MPT061"]

    def test_a_copy_that_outlives_its_weight_is_a_finding(self):
        finding, = self.loop("outside")
        self.assertEqual((finding["severity"], finding["step"]), ("error", 1))
        self.assertIn("once per step", finding["advice"])

    def test_a_region_for_each_step_is_healthy(self):
        self.assertEqual(self.loop("inside"), [])

    def test_every_mode_finds_such_a_copy(self):
        path = self.write(LOOP)
        for mode in ("watch", "local", "step"):
            for where, steps in (("outside", [1]), ("inside", [])) if LONG or mode == "watch" else (("outside", [1]),):
                options = ("--steps", "0:9:1") if mode == "step" else ()
                shutil.rmtree(os.path.join(self.top, "run"), ignore_errors=True)
                self.run_in(TRACE, "-q", "--mode", mode, *options, "--no-build", "-o", "run", "--", PYTHON, path, "low",
                            where, "traced")
                found = [f for f in json.loads(self.run_in(TRACE, "report", "run", "--json", "-"))["findings"]
                         if f["rule"] == "MPT061"]
                self.assertEqual([f["step"] for f in found], steps, (mode, where))
                for f in found:
                    self.assertEqual(f["layer"], "0", mode)
                    self.assertIn("from step 1 on 2 layers read the 16-bit copy", f["message"])

    def test_copies_of_weights_that_do_not_change_are_sound(self):
        path = self.write(LOOP.replace("lr=0.1", "lr=0.0"))
        self.run_in(TRACE, "-q", "--mode", "watch", "--no-build", "-o", "run", "--", PYTHON, path, "low", "outside",
                    "traced")
        report = json.loads(self.run_in(TRACE, "report", "run", "--json", "-"))
        self.assertEqual([f for f in report["findings"] if f["rule"] == "MPT061"], [])


if __name__ == "__main__":
    unittest.main()
