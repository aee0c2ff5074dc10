"""How many mutexes the adapter locks for an op, counted by lock_counter.c over steps that are not sampled.

    MP_TRACE=build/release/bin/mp-trace LOCK_COUNTER=.../liblock_counter.so locks_test.py [PYTHON]
"""
import json
import os
import shutil
import subprocess
import unittest

from traced import PYTHON, TRACE, TracedTest, needs_torch

COUNTER = os.path.abspath(os.environ["LOCK_COUNTER"])

# {ops} further ops of a step: an in-place op, an op with a new result, a matrix product.
PROGRAM = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8).bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, a = torch.randn(4, 8).bfloat16(), torch.randn(8, 8).bfloat16()
for step in range({steps}):
    optimizer.zero_grad()
    model(x).float().square().mean().backward()
    optimizer.step()
    for _ in range({ops} // 3):
        b = a @ a
        b.mul_(0.5)
        c = b + a
"""
SAMPLED = 18  # steps; 17 to 31 are not sampled
MORE = 12


@needs_torch()
class Locks(TracedTest):
    def count(self, mode, steps, ops):
        """Locks and ops of a run."""
        path, run, out = (os.path.join(self.top, name) for name in ("train.py", "run", "locks"))
        shutil.rmtree(run, ignore_errors=True)
        with open(path, "w") as f:
            f.write(PROGRAM.format(steps=steps, ops=ops))
        env = {k: v for k, v in os.environ.items() if not k.startswith("MP_TRACE")}
        env.update(OMP_NUM_THREADS="1", LD_PRELOAD=COUNTER, LOCK_COUNTER_OUT=out)
        subprocess.run([TRACE, "-q", "--mode", mode, "--no-build", "-o", run, "--", PYTHON, path], env=env, check=True,
                       timeout=300)
        done = subprocess.run([TRACE, "report", run, "--json", "-"], capture_output=True, check=True)
        with open(out) as f:
            return int(f.read()), json.loads(done.stdout)["coverage"]["ops"]

    def per_op(self, mode, ops=300):
        """What further ops cost in steps that are not sampled; what a step costs by itself cancels out."""
        cost = [[self.count(mode, steps, n) for steps in (SAMPLED, SAMPLED + MORE)] for n in (0, ops)]
        (few, many) = [(late[0] - early[0], late[1] - early[1]) for early, late in cost]
        self.assertGreater(many[1] - few[1], MORE * ops * 0.9)
        return (many[0] - few[0]) / (many[1] - few[1])

    def test_watching_an_op_takes_no_lock(self):
        self.assertEqual(self.per_op("watch"), 0)

    def test_the_twin_of_an_op_takes_few_locks(self):
        # Per op: the shadows of its arguments and results, and blocks of the pool.
        self.assertLess(self.per_op("trajectory"), 9)


if __name__ == "__main__":
    unittest.main(verbosity=2)
