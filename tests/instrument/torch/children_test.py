"""Trainings in processes that the program, a library or a notebook starts: pools, forks, launchers, kernels.

    MP_TRACE=build/release/bin/mp-trace children_test.py [PYTHON]      PYTHON has torch 2; default .venv's
"""
import os
import unittest

from runs_test import HEAD, TracedRun

POOL = HEAD + """
import time
def work(lr):
    model = model_of()
    result = train(model, torch.optim.SGD(model.parameters(), abs(lr)))
    if lr < 0:
        train(model, torch.optim.SGD(model.parameters(), 0.1), 1)
        open(sys.argv[1], "w").close()
        END
    return result
def run(pool):
    CALLS
if __name__ == "__main__":
    with torch.multiprocessing.get_context("spawn").Pool(2) as pool: run(pool)
    print("done")
"""


class Pools(TracedRun):
    """A pool ends its workers by SIGTERM where they wait for a task."""

    def pool(self, calls, end="pass", status=0):
        text = POOL.replace("CALLS", calls).replace("END", end)
        self.mark = self.top + "/mark"
        if os.path.exists(self.mark): os.remove(self.mark)
        self.done = self.trace(text, self.mark, mode="watch")
        self.assertEqual((self.done.returncode, self.done.stdout), (0, "done\n"), self.done.stderr)
        self.assertEqual(self.done.stderr.count("mp-trace: next:"), self.done.stderr.count("steps, 1 rank"))
        found, text = self.gate()
        self.assertEqual(found, status, text + self.done.stderr)
        return text

    def test_a_worker_that_waits_for_a_task_ended_in_order(self):
        text = self.pool("pool.map(work, [0.1, 0.2, 0.3], chunksize=1)")
        self.assertNotIn("killed", text)
        self.assertIn("mp-trace: next:", self.done.stderr)

    def test_a_worker_that_comes_to_its_end_has_one_summary(self):
        self.pool("pool.map(work, [0.1, 0.2]); pool.close(); pool.join()")
        self.assertIn("mp-trace: next:", self.done.stderr)

    def test_a_worker_that_is_killed_in_a_training_did_not(self):
        wait = ("work_done = pool.apply(work, [0.1])\n    pool.apply_async(work, [-0.1])\n"
                "    while not os.path.exists(sys.argv[1]): time.sleep(0.05)")
        for end, text in (("time.sleep(60)", self.pool(wait, "time.sleep(60)", 3)),
                          ("kill", self.pool(wait + "\n    time.sleep(0.5)", "os.kill(os.getpid(), 9)", 3))):
            self.assertIn("killed, crashed", text, end)

    def test_a_task_that_raises_is_no_end_in_order(self):
        text = self.pool("try: pool.map(work, [0.1, -0.1, 0.1], chunksize=1)\n    except ValueError: pass",
                         "raise ValueError('data')", 3)
        self.assertIn("ended by ValueError", text)


if __name__ == "__main__":
    unittest.main()
