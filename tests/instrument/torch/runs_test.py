"""What a user's runs are: what was seen of them, how they ended, their steps, ranks, losses and jobs.

    MP_TRACE=build/release/bin/mp-trace runs_test.py [PYTHON]      PYTHON has torch 2; default .venv's

Each bad program has a good twin beside it that must pass.
"""
import json
import os
import shutil
import subprocess
import unittest

from traced import LONG, PYTHON, TRACE, TracedTest, needs_torch

HEAD = """
import os, sys, torch
torch.manual_seed(0)
torch.set_num_threads(1)
def model_of(): return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
def train(model, optimizer, steps=4, call=None, micro=1):
    for i in range(steps):
        total = 0.0
        for k in range(micro):
            x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
            loss = torch.nn.functional.cross_entropy((model if call is None else call)(x), y) / micro
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
    return total
"""
PLAIN = HEAD + """
model = model_of()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
train(model, optimizer)
"""
# One fp16 product overflows; a clamp hides it from the loss.
OVERFLOWS = HEAD + """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4)
    def forward(self, x):
        h = torch.relu(self.a(x)).to(torch.float16) * 60000.0 * 4.0
        return self.b(torch.clamp(h.float(), max=10.0))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
"""
# A custom kernel: numpy computes behind autograd's back.
CUSTOM = HEAD + """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(x.detach().numpy() * 2)
    @staticmethod
    def backward(ctx, g):
        return g * 2
model = model_of()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
train(model, optimizer, call=lambda x: model(CALL))
"""
# Ops that a library defines after torch has started. The second calls torch's own, the others compute by themselves.
LIBRARY = HEAD + """
library = torch.library.Library("stranger", "DEF")
library.define("double(Tensor x) -> Tensor")
library.define("triple(Tensor x) -> Tensor")
library.define("update(Tensor(a!)[] weights) -> ()")
calls = [0, 0]
def double(x):
    calls[0] += 1
    return torch.from_numpy(x.numpy() * 2)
def triple(x):
    calls[0] += 1
    return x * 3
def update(weights):
    calls[1] += 1
    for w in weights: w.detach().numpy()[:] *= 0.999
library.impl("double", double, "CPU")
library.impl("triple", triple, "CPU")
library.impl("update", update, "CPU")
model = model_of()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
"""


@needs_torch(2)
class TracedRun(TracedTest):
    def setUp(self):
        super().setUp()
        self.run_directory = os.path.join(self.top, "run")

    def trace(self, text, *words, mode="trajectory", options=(), command=()):
        path = self.script(text)
        shutil.rmtree(self.run_directory, ignore_errors=True)
        command = command or [PYTHON, path, *words]
        return subprocess.run([TRACE, "--mode", mode, *options, "--no-build", "-o", self.run_directory, "--", *command],
                              capture_output=True, text=True, env=self.env, cwd=self.top, timeout=300)

    def gate(self):
        done = subprocess.run([TRACE, "gate", self.run_directory], capture_output=True, text=True, env=self.env,
                              cwd=self.top, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def report(self, directory=None):
        done = subprocess.run([TRACE, "report", directory or self.run_directory, "--json", "-"], capture_output=True,
                              text=True, env=self.env, cwd=self.top, timeout=120)
        return json.loads(done.stdout)

    def steps(self, optimizer=0):
        return [s["step"] for s in self.report()["steps"] for r in s["ranks"] if r["optimizer"] == optimizer]


class NotSeen(TracedRun):
    """No PASS over what was not seen."""

    def test_compiled_code_is_inconclusive_and_eager_finds_the_overflow(self):
        compiled = OVERFLOWS + "train(model, optimizer, call=torch.compile(model))\n"
        for mode in ("trajectory", "watch") if LONG else ("watch",):
            done = self.trace(compiled, mode=mode)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("--eager"), 2, "at the start and at the end: " + done.stderr)
            self.assertNotIn("fp32 twin 2", done.stderr)
            status, text = self.gate()
            self.assertEqual(status, 3, text)
            self.assertIn("--eager", text)
        self.trace(compiled, options=["--eager"])
        status, text = self.gate()
        self.assertEqual(status, 1, text)
        self.assertIn("MPT001", text)

    def test_compiled_code_that_is_seen_or_never_ran_passes(self):
        for call in ("torch.compile(model, backend='aot_eager')", "[model, torch.compile(model)][0]"):
            done = self.trace(PLAIN + f"train(model, optimizer, call={call})\n")
            status, text = self.gate()
            self.assertEqual(status, 0, text + done.stderr)
            self.assertNotIn("eager", done.stderr)

    def test_a_compiled_optimizer_is_inconclusive(self):
        done = self.trace(HEAD + "model = model_of()\n"
                          "optimizer = torch.optim.SGD(model.parameters(), 1e-3, foreach=True)\n"
                          "run = torch.compile(optimizer.step)\n"
                          "for i in range(3):\n"
                          "    model(torch.randn(8, 16)).square().mean().backward()\n    run()\n"
                          "    optimizer.zero_grad()\ntrain(model, optimizer)\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.gate()[0], 3)

    def test_random_numbers_in_16_bits_are_counted(self):
        noise = HEAD + """
class Noise(torch.nn.Module):
    def forward(self, h): return h * DRAW
model = torch.nn.Sequential(torch.nn.Linear(16, 32), Noise(), torch.nn.Linear(32, 4)).bfloat16()
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for i in range(3):
    model(torch.randn(8, 16).bfloat16()).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
        draws = (("(0.9 + torch.rand(8, 1, dtype=h.dtype)).floor_()", 3), ("torch.rand(8, 1).to(h.dtype)", 0),
                 ("torch.randn_like(h)", 3), ("torch.full_like(h, 0.9).bernoulli_(0.9)", 0))
        for draw, drawn in draws if LONG else draws[:2]:
            self.trace(noise.replace("DRAW", draw))
            self.assertEqual(self.report()["coverage"]["drawn"], drawn, draw)
        # By the loop itself, as diffusion models do. In the first step that may be an initialisation.
        batch = "torch.randn(8, 16).bfloat16()"
        for draw, drawn in ((batch, 0), ("torch.randn(8, 16, dtype=torch.bfloat16)", 2)):
            self.trace(noise.replace("h * DRAW", "h").replace(batch, draw))
            self.assertEqual(self.report()["coverage"]["drawn"], drawn, draw)

    def test_memory_that_torch_fills_itself_is_not_the_programs_write(self):
        loop = """
model = model_of()
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for i in range(3):
    (model(torch.randn(8, 16)) * torch.tensor(0.5)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
        self.trace(HEAD + "torch.use_deterministic_algorithms(True)\n" + loop)
        filled = self.report()["coverage"]
        self.trace(HEAD + loop)
        plain = self.report()["coverage"]
        self.assertEqual(filled["stale"], 0)
        self.assertEqual({k: filled[k] for k in ("ops", "external", "seeds")},
                         {k: plain[k] for k in ("ops", "external", "seeds")})

    def test_a_custom_kernel_is_inconclusive_and_a_batch_of_numpy_is_not(self):
        self.trace(CUSTOM.replace("CALL", "Double.apply(x.requires_grad_())"))
        status, text = self.gate()
        self.assertEqual(status, 3, text)
        self.assertIn("custom kernels", text)
        self.trace(CUSTOM.replace("CALL", "torch.from_numpy(x.numpy() * 2)"))
        self.assertEqual(self.gate()[0], 0)

    def test_ops_of_a_library_run_once_and_are_inconclusive(self):
        for call, said in (("train(model, optimizer, call=lambda x: model(torch.ops.stranger.double(x)))",
                            "stranger::double"),
                           ("for i in range(4):\n    train(model, optimizer, 1)\n"
                            "    with torch.no_grad(): torch.ops.stranger.update(list(model.parameters()))",
                            "stranger::update")):
            done = self.trace(LIBRARY + call + "\nassert sum(calls) == 4, calls\n")
            self.assertEqual(done.returncode, 0, done.stderr)
            status, text = self.gate()
            self.assertEqual(status, 3, text)
            self.assertIn(said, json.dumps(self.report()["coverage"]))
        self.trace(LIBRARY + "train(model, optimizer, call=lambda x: model(torch.ops.stranger.triple(x)))\n")
        self.assertEqual(self.gate()[0], 0)

    def test_an_optimizer_that_writes_the_weights_unseen_is_inconclusive(self):
        self.trace(HEAD + "class Unseen(torch.optim.Optimizer):\n"
                          "    @torch.no_grad()\n"
                          "    def step(self):\n"
                          "        for p in self.param_groups[0]['params']:\n"
                          "            p.detach().numpy()[:] -= 1e-3 * p.grad.numpy()\n"
                          "model = model_of()\n"
                          "train(model, Unseen(model.parameters(), {}))\n")
        status, text = self.gate()
        self.assertEqual(status, 3, text)


class Ends(TracedRun):

    def test_a_run_that_crashed_or_was_killed_does_not_pass(self):
        ends = (("raise KeyboardInterrupt", "ended by KeyboardInterrupt"),
                ("model(torch.randn(8, 16)).sum()\nos.kill(os.getpid(), 15)", "killed, crashed"),
                ("os._exit(1)", "the program ended with status 1"),
                ("try: train(model, optimizer, x)\nexcept NameError: sys.exit(7)", "the program ended with status 7"),
                ("raise ValueError('x')", "ended by ValueError"),
                ("os.kill(os.getpid(), 9)", "killed, crashed"),
                ("sys.exit(1)", "the program ended with status 1"),
                ("raise SystemExit('no data')", "the program ended with status 1"))
        for end, said in ends if LONG else ends[:4]:
            done = self.trace(PLAIN + end + "\n")
            status, text = self.gate()
            self.assertEqual(status, 3, end + text)
            self.assertIn(said, text)
            if "ended" in said and "Keyboard" not in said:
                self.assertEqual(done.returncode, int(said.split()[-1]) if "status" in said else 1)
                self.assertEqual(done.stderr.count(said), 1, "the summary says it too: " + done.stderr)

    def test_nccl_loads_nothing_of_ours_beside_torch(self):
        show = ("import ctypes\nread = ctypes.CDLL(None).getenv\nread.restype = ctypes.c_char_p\n"
                "print(read(b'NCCL_PROFILER_PLUGIN'))\n")
        before, after = self.trace(show + PLAIN + show).stdout.split()
        self.assertTrue(before.endswith("libmptrace_cuda.so'"), before)
        self.assertEqual(after, "None")

    def test_a_run_that_ends_by_itself_passes_and_has_the_last_line(self):
        ends = ("raise SystemExit(256)", "os._exit(0)", "", "sys.exit()", "sys.exit(0)",
                "import atexit; atexit.register(print, 'bye')")
        for end in ends if LONG else ends[:2]:
            done = self.trace(PLAIN + end + "\n")
            self.assertEqual((done.returncode, self.gate()[0]), (0, 0), done.stderr)
            self.assertRegex(done.stderr.splitlines()[-1], r"^mp-trace: next: mp-trace report ")
            self.assertNotIn("Exception ignored", done.stderr)
            self.assertNotIn("not known", done.stderr)


class Steps(TracedRun):
    """Steps, losses, ranks and jobs are the user's own."""

    def test_micro_batches_have_one_loss(self):
        done = self.trace(PLAIN + "print(train(model, optimizer, micro=4))\n")
        self.assertAlmostEqual(self.report()["steps"][-1]["ranks"][0]["loss"], float(done.stdout), 6)
        self.assertIn("(sum of 4 backward() calls)", done.stderr)

    def test_a_gradient_that_is_given_back_has_no_loss_of_its_own(self):
        penalty = """
    x = torch.randn(8, 16, requires_grad=True)
    d, = torch.autograd.grad(model(x).sum() - 100, x, create_graph=True)
    loss = (d - 1).square().mean() + model(x).square().mean()
    loss.backward()
"""
        assigned = """
    loss = model(torch.randn(8, 16)).square().mean()
    weights = list(model.parameters())
    for p, g in zip(weights, torch.autograd.grad(loss, weights)): p.grad = g
"""
        for way in (penalty, assigned):
            done = self.trace(HEAD + "model = model_of()\noptimizer = torch.optim.SGD(model.parameters(), 1e-2)\n"
                              "for i in range(3):" + way +
                              "    optimizer.step(); optimizer.zero_grad()\nprint(loss.item())\n")
            self.assertAlmostEqual(self.report()["steps"][-1]["ranks"][0]["loss"], float(done.stdout), 6, way)
            self.assertNotIn("backward() calls", done.stderr, way)

    def test_two_optimizers_that_alternate_are_one_training(self):
        self.trace(HEAD + "G, D = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)\n"
                   "g, d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())\n"
                   "for i in range(5):\n"
                   "    fake = G(torch.randn(8, 4))\n"
                   "    d.zero_grad(); (D(torch.randn(8, 8)).mean() - D(fake.detach()).mean()).backward(); d.step()\n"
                   "    g.zero_grad(); D(fake).mean().backward(); g.step()\n")
        self.assertEqual((self.steps(0), self.steps(1)), ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]))
        self.assertEqual(self.gate()[0], 0)

    def test_a_second_training_in_the_process_is_counted(self):
        self.trace(HEAD + "for lr in (0.1, 0.01):\n    model = model_of()\n"
                   "    train(model, torch.optim.SGD(model.parameters(), lr), 3)\n")
        self.assertEqual(self.steps(), list(range(6)))

    def test_a_second_training_whose_optimizer_was_made_before_the_first_step(self):
        done = self.trace(HEAD + "models = [model_of(), model_of()]\n"
                          "made = [torch.optim.SGD(m.parameters(), 0.1) for m in models]\n"
                          "for model, optimizer in zip(models, made): train(model, optimizer, 16)\n")
        self.assertEqual((self.steps(0), self.steps(1)), (list(range(32)), []))
        self.assertRegex(done.stderr, "training [12] of 2")

    BLOCKS = HEAD + """
one, other = model_of(), torch.nn.Linear(4, 4)
first, second = torch.optim.SGD(one.parameters(), 0.1), torch.optim.SGD(other.parameters(), 0.1)
def block(optimizer, call, steps):
    for i in range(steps):
        first.zero_grad(); second.zero_grad()
        call(torch.randn(8, 16)).square().mean().backward()
        optimizer.step()
"""

    def test_networks_that_are_trained_in_turn_have_the_steps_of_the_first(self):
        # As a GAN: the backward of the second network reaches the first.
        both = "for i in range(3): block(first, one, 20); block(second, lambda x: other(one(x)), 20)\n"
        done = self.trace(self.BLOCKS + both)
        self.assertEqual((self.steps(0), len(self.steps(1))), (list(range(60)), 60))
        self.assertNotIn("steps  ", done.stderr)
        # Networks apart, as of an actor and a critic: the first block of the second looks like another training.
        done = self.trace(self.BLOCKS + "for i in range(3): block(first, one, 20); block(second, lambda x: "
                          "other(x[:, :4]), 20)\n")
        self.assertEqual((self.steps(0), len(self.steps(1))), (list(range(80)), 40))
        self.assertIn("steps            an optimizer that came back counts the steps from step 40 on again: steps 20 "
                      "to 39 are those of others", done.stderr)

    def test_steps_that_no_optimizer_counts_are_told(self):
        done = self.trace(self.BLOCKS + "block(first, one, 20); block(second, lambda x: other(one(x)), 20)\n")
        self.assertEqual((self.steps(0), self.steps(1)), (list(range(20)), [19] * 20))
        self.assertIn("steps            steps of another optimizer are part of step 19: the last 20, because",
                      done.stderr)

    def test_a_late_second_optimizer_is_not_another_training(self):
        # The first step of a critic's opponent comes late and reaches the critic: still one training.
        self.trace(HEAD + "G, D = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)\n"
                   "g, d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())\n"
                   "for i in range(12):\n"
                   "    fake = G(torch.randn(8, 4))\n"
                   "    d.zero_grad(); (D(torch.randn(8, 8)).mean() - D(fake.detach()).mean()).backward(); d.step()\n"
                   "    if i % 3 == 2: g.zero_grad(); D(fake).mean().backward(); g.step()\n")
        self.assertEqual((self.steps(0), self.steps(1)), (list(range(12)), [2, 5, 8, 11]))
        # A part that is trained later on, by a backward of the whole model.
        self.trace(HEAD + "model = model_of()\n"
                   "a, b = (torch.optim.SGD(model[i].parameters(), 0.1) for i in (0, 2))\n"
                   "for i in range(8):\n"
                   "    model(torch.randn(8, 16)).square().mean().backward(); a.step()\n"
                   "    if i > 3: b.step()\n    model.zero_grad()\n")
        self.assertEqual(self.steps(0), list(range(8)))

    def test_a_loop_without_an_optimizer_has_steps(self):
        done = self.trace(HEAD + "w = torch.randn(8, 1, requires_grad=True)\n"
                          "for i in range(5):\n"
                          "    (torch.randn(16, 8) @ w).square().mean().backward()\n"
                          "    with torch.no_grad():\n        w -= 0.05 * w.grad\n        w.grad.zero_()\n")
        self.assertEqual(self.steps(), [0, 1, 2, 3, 4], done.stderr)
        self.assertIn("mp-trace: 5 steps, 1 rank", done.stderr)

    def test_a_loop_that_binds_new_tensors_to_its_parameters_has_steps(self):
        self.trace(HEAD + "w, b = torch.randn(16, 4), torch.zeros(4)\n"
                   "for i in range(5):\n"
                   "    w.requires_grad_(True)\n    b.requires_grad_(True)\n"
                   "    for k in range(2): (torch.randn(8, 16) @ w + b).square().mean().backward()\n"
                   "    with torch.no_grad(): w, b = w - 0.01 * w.grad, b - 0.01 * b.grad\n")
        self.assertEqual(self.steps(), [0, 1, 2, 3, 4])

    def test_each_job_of_a_script_is_a_run(self):
        bad = OVERFLOWS + "train(model, optimizer)\n"
        with open(os.path.join(self.top, "bad.py"), "w", encoding="utf-8") as f:
            f.write(bad)
        done = self.trace(PLAIN, command=["sh", "-c", f"{PYTHON} train.py; {PYTHON} bad.py; {PYTHON} train.py"])
        self.assertEqual(done.stderr.count("4 steps, 1 rank"), 3, done.stderr)
        status, text = self.gate()
        self.assertEqual(status, 1, text)
        self.assertEqual([line for line in text.splitlines() if line.startswith(self.run_directory)],
                         [self.run_directory + job for job in ("", "/job.2", "/job.3")])

    def test_spawned_ranks_are_one_job_with_one_summary(self):
        done = self.trace(HEAD + "import torch.distributed as dist, torch.multiprocessing as mp\n"
                          "def main(rank):\n"
                          "    dist.init_process_group('gloo', init_method=sys.argv[1], rank=rank, world_size=2)\n"
                          "    model = torch.nn.parallel.DistributedDataParallel(model_of())\n"
                          "    train(model, torch.optim.SGD(model.parameters(), 1e-2))\n"
                          "    dist.destroy_process_group()\n"
                          "if __name__ == '__main__':\n    mp.spawn(main, nprocs=2)\n",
                          f"file://{self.top}/store")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("mp-trace: next:"), 1, done.stderr)
        self.assertIn("4 steps, 2 ranks", done.stderr)
        self.assertNotIn("not known", done.stderr)
        self.assertEqual(self.gate()[0], 0)
        self.assertEqual(self.report()["run"]["program"], "train.py")


HOOK = HEAD + """
import torch.distributed as dist, torch.multiprocessing as mp
def main(rank):
    dist.init_process_group('gloo', init_method=sys.argv[1], rank=rank, world_size=2)
    model = model_of()
    net = torch.nn.parallel.DistributedDataParallel(model)
    def bad(state, bucket):
        sums = bucket.buffer().to(torch.float16)
        work = dist.all_reduce(sums, async_op=True).get_future()
        return work.then(lambda done: bucket.buffer().copy_(done.value()[0]).div_(2))
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    net.register_comm_hook(None, dict(bad=bad, good=fp16_compress_hook)[sys.argv[2]])
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=1000)
    for i in range(8):
        optimizer.zero_grad()
        loss = net(torch.randn(5, 16)).mean() * (80000.0 if i == 5 else 200.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    dist.destroy_process_group()
if __name__ == '__main__':
    mp.spawn(main, nprocs=2)
"""


class Overhead(TracedRun):
    """--overhead: fewer steps are measured in full, and the report says how many."""

    LATE = OVERFLOWS.replace("60000.0 * 4.0", "scale()").replace(
        "model = Net()", "scale = lambda: 60000.0 * 4.0 if sum(seen) == 36 else 1.0\nseen = []\nmodel = Net()")

    def sampled(self):
        return [n["text"] for n in self.report()["notes"] if n["kind"] == "sampled"]

    def test_fewer_steps_are_measured_and_the_cause_is_still_named(self):
        program = self.LATE + "train(model, optimizer, 40, call=lambda x: (seen.append(1), model(x))[1])\n"
        self.trace(program, options=["--overhead", "0.01%"])
        found, = self.sampled()
        self.assertRegex(found, r"^[2-9] of 39 steps were measured in full, which took [0-9.]+ % of the time")
        self.assertEqual({f["step"] for f in self.report()["findings"] if f["rule"] == "MPT001"}, {35})

    def test_local_runs_without_its_twin(self):
        self.trace(PLAIN.replace("train(model, optimizer)", "train(model, optimizer, 40)"), mode="local",
                   options=["--overhead", "0.01%"])
        self.assertRegex(self.sampled()[0], "^[2-9] of 39 steps")  # a busy machine is noticed after a few

    def test_all_are_measured_where_nothing_is_limited(self):
        self.trace(PLAIN)
        self.assertEqual(self.sampled(), [])


class SmallValues(TracedRun):
    """Sums and states whose values are too small for their format. Each good twin keeps them in fp32."""

    def first(self, text, dtype):
        self.trace(text.replace("DTYPE", dtype))
        findings = [f for f in self.report()["findings"] if f["severity"] != "note"]
        return findings[0] if findings else None

    def test_a_sum_of_losses(self):
        text = HEAD + """
model = model_of()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for i in range(2):
    total = torch.zeros((), dtype=torch.DTYPE)
    x, y = torch.randn(500, 16), torch.randint(0, 4, (500,))
    losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    for one in losses.to(total.dtype): total = total + one
    (total / 500).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
        found = self.first(text, "bfloat16")
        self.assertEqual((found["rule"], found["op"]), ("MPT012", "aten::add"), found)
        self.assertIn("of about 500 addends a step", found["message"])
        self.assertIsNone(self.first(text, "float32"))

    def test_a_counter_of_the_program(self):
        text = HEAD + """
model = model_of()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
count = torch.full((), 256, dtype=torch.DTYPE)
for i in range(5):
    torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 4, (8,))).backward()
    count += 1
    for p in model.parameters(): p.grad.div_(1 - 0.999 ** count.float())
    optimizer.step()
    optimizer.zero_grad()
"""
        found = self.first(text, "bfloat16")
        self.assertEqual((found["rule"], found["severity"]), ("MPT041", "error"), found)
        self.assertIn("at 256 in every sampled step", found["message"])
        self.assertIsNone(self.first(text, "float32"))

    def test_second_moments_in_fp16(self):
        text = HEAD + """
model = model_of()
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
def narrow(*_):
    for state in optimizer.state.values():
        state["exp_avg_sq"].copy_(state["exp_avg_sq"].to(torch.DTYPE).float())
optimizer.register_step_post_hook(narrow)
for i in range(6):
    with torch.autocast("cpu", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
    (loss * 1e-3).backward()  # the squares of the gradients are below 6e-8
    optimizer.step()
    optimizer.zero_grad()
"""
        found = self.first(text, "float16")
        self.assertEqual((found["rule"], found["phase"]), ("MPT025", "optimizer"), found)
        self.assertIsNone(self.first(text, "float32"))


class Reductions(TracedRun):
    """Where an overflow began."""

    def test_a_sum_over_ranks_that_overflows_is_the_cause(self):
        # The exit code is torch's: DDP keeps its process group, and about one in 12 of these programs aborts at its
        # end without mp-trace too, when gloo's threads outlive the interpreter.
        self.trace(HOOK, f"file://{self.top}/store", "bad")
        [skip] = self.report()["skips"]
        self.assertEqual((skip["step"], skip["cause"], skip["op"]), (5, "reduction overflow", "all_reduce"))
        self.assertRegex(skip["why"], r"^all_reduce of the gradients? of .*2\.bias.* made \d+ non-finite values? from "
                                      r"inputs that are finite on every rank")

    def test_without_a_loss_scale_the_sum_is_named_with_its_parameters(self):
        plain = HOOK.replace("scaler.scale(loss)", "loss").replace("scaler.step(optimizer)", "optimizer.step()")
        plain = plain.replace("        scaler.update()\n", "").replace("200.0", "400.0")
        self.trace(plain.replace("80000.0", "160000.0"), f"file://{self.top}/store", "bad")
        found = [f for f in self.report()["findings"] if f["rule"] == "MPT050"]
        self.assertEqual([(f["op"], f["layer"], f["step"]) for f in found], [("all_reduce", "2", 5)], found)
        self.assertRegex(found[0]["message"], r"^all_reduce in fp16 of the gradients? of 2\.bias.* made \d+ non-finite")
        if LONG:
            self.trace(plain, f"file://{self.top}/other", "good")
            self.assertEqual([f for f in self.report()["findings"] if f["rule"] == "MPT050"], [])

    def test_what_a_hook_of_ddp_loses_is_lost_in_the_bucket(self):
        self.trace(HOOK.replace("200.0", "1e-6").replace("80000.0", "1e-6"), f"file://{self.top}/store", "good")
        found = [(f["rule"], f["layer"], f["phase"]) for f in self.report()["findings"] if f["severity"] == "error"]
        self.assertIn(("MPT030", "(bucket)", "backward"), found)

    @unittest.skipUnless(LONG, "left to --long")
    def test_watch_names_the_sum_too(self):
        self.trace(HOOK, f"file://{self.top}/store", "bad", mode="watch")
        [skip] = self.report()["skips"]
        self.assertEqual((skip["cause"], skip["op"]), ("reduction overflow", "all_reduce"), skip)
        self.trace(HOOK.replace("(80000.0", "(8e7"), f"file://{self.top}/other", "good", mode="watch")
        [skip] = self.report()["skips"]
        self.assertNotEqual(skip["op"], "all_reduce", "each rank's own values overflow: " + str(skip))

    def test_a_sum_that_is_divided_first_is_not(self):
        self.trace(HOOK, f"file://{self.top}/store", "good")
        self.assertEqual(self.report()["skips"], [])
        self.assertEqual(self.gate()[0], 0)


if __name__ == "__main__":
    unittest.main()
