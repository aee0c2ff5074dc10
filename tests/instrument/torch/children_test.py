"""Trainings in processes that the program, a library or a notebook starts: pools, forks, launchers, kernels.

    MP_TRACE=build/release/bin/mp-trace children_test.py [PYTHON]      PYTHON has torch 2; default .venv's
"""
import json
import os
import subprocess
import unittest

from runs_test import HEAD, PLAIN, TracedRun
from traced import LONG, PYTHON

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
    with torch.multiprocessing.get_context("spawn").Pool(WORKERS) as pool: run(pool)
    print("done")
"""


class Pools(TracedRun):
    """A pool ends its workers by SIGTERM where they wait for a task."""

    def pool(self, calls, end="pass", status=0, workers=2):
        text = POOL.replace("CALLS", calls).replace("END", end).replace("WORKERS", str(workers))
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
        # At once: a worker that has done a task dies as the next one begins.
        at_once = "pool.apply(work, [0.1])\n    pool.apply_async(os.kill, [pool._pool[0].pid, 9])\n    time.sleep(1)"
        for calls, end, workers in ((wait, "time.sleep(60)", 2),
                                    (wait + "\n    time.sleep(0.5)", "os.kill(os.getpid(), 9)", 2),
                                    (at_once, "pass", 1)):
            self.assertIn("killed, crashed", self.pool(calls, end, 3, workers), calls)

    def test_a_worker_that_is_killed_before_its_first_record_is_a_job(self):
        self.pool("pool.map(work, [0.1])")
        (name,) = [n for n in os.listdir(self.run_directory) if n.endswith(".mpt")]
        os.mkdir(self.run_directory + "/job.2")
        with open(os.path.join(self.run_directory, name), "rb") as f: header = f.read(32)
        with open(os.path.join(self.run_directory, "job.2", name), "wb") as f: f.write(header)
        status, text = self.gate()
        self.assertEqual(status, 3, text)
        self.assertIn("killed, crashed", text)

    def test_a_task_that_raises_is_no_end_in_order(self):
        text = self.pool("try: pool.map(work, [0.1, -0.1, 0.1], chunksize=1)\n    except ValueError: pass",
                         "raise ValueError('data')", 3)
        self.assertIn("ended by ValueError", text)


RANKS = HEAD + """
import torch.distributed as dist, torch.multiprocessing as mp
os.environ.update(MASTER_ADDR="127.0.0.1")
def main(rank):
    dist.init_process_group("gloo", init_method=sys.argv[1], rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(model_of())
    train(model, torch.optim.SGD(model.parameters(), 1e-2))
    dist.destroy_process_group()
def forked():
    for rank in range(2):
        if os.fork() == 0:
            main(rank)
            os._exit(0)
    return [os.wait()[1] for rank in range(2)]
if __name__ == "__main__":
    print(START)
"""
# A parent that makes what its child trains.
CHILD = HEAD + """
model = model_of()
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
def child():
    print(train(model, optimizer), flush=True)
BEFORE
if os.fork() == 0:
    child()
    os._exit(0)
print(os.wait()[1])
AFTER
"""
PREPARED = """
pool = torch.multiprocessing.get_context("fork").Pool(2)
print(len(pool.map(torch.randn, [4, 4])))
pool.terminate()
"""


class Forks(TracedRun):
    """The child of a process that has recorded nothing is traced; that of one that trains is not."""

    def ranks(self, start, mode="watch"):
        done = self.trace(RANKS.replace("START", start), f"file://{self.top}/store{len(start)}", mode=mode)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("mp-trace: next:"), 1, done.stderr)
        self.assertIn("4 steps, 2 ranks", done.stderr)
        self.assertNotIn("not known", done.stderr)
        self.assertEqual(self.gate()[0], 0)

    def test_forked_ranks_are_one_job_with_one_summary(self):
        self.ranks("forked()")
        self.ranks("mp.start_processes(main, nprocs=2, start_method='fork')", "trajectory")

    def child(self, before="", after="", mode="trajectory"):
        text = CHILD.replace("BEFORE", before).replace("AFTER", after)
        self.done = self.trace(text, mode=mode)
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        return self.done.stderr

    def test_a_child_trains_what_its_parent_made(self):
        said = self.child("model(torch.randn(8, 16)).sum()")  # weights that the child has not seen are data
        self.assertIn("4 steps, 1 rank", said)
        self.assertEqual(self.steps(), [0, 1, 2, 3])
        self.assertEqual(self.gate()[0], 0)

    def test_a_parent_that_trains_afterwards_is_a_job_of_its_own(self):
        self.assertEqual(self.child(after="train(model, optimizer)").count("4 steps, 1 rank"), 2)
        self.assertEqual(self.gate()[0], 0)

    def test_the_child_of_a_training_is_not_traced(self):
        said = self.child("train(model, optimizer, 2)")
        self.assertEqual(said.count("forked by one which had trained: it is not traced"), 1, said)
        self.assertEqual(self.steps(), [0, 1])

    def test_children_that_prepare_data_leave_no_recording(self):
        done = self.trace(PLAIN.replace("model = model_of()", PREPARED + "model = model_of()"), mode="watch")
        self.assertEqual(done.stderr.count("mp-trace: next:"), 1, done.stderr)
        self.assertEqual(os.listdir(self.run_directory).count("job.2"), 0)
        self.assertEqual(self.gate()[0], 0)

    def test_no_rule_passes_where_nothing_was_recorded(self):
        self.trace("print(1)")
        status, text = self.gate()
        self.assertEqual(status, 3)
        self.assertIn("INCONCLUSIVE  0 rules passed", text)


LIGHTNING = HEAD + """
import logging, warnings, lightning
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model_of()
    def training_step(self, batch, i):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.model(x), y)
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 1e-2)
if __name__ == "__main__":
    data = torch.utils.data.TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))
    trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy=sys.argv[1], max_steps=4, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Net(), torch.utils.data.DataLoader(data, batch_size=8))
"""


def has(package):
    return subprocess.run([PYTHON, "-c", f"import importlib.util as u; assert u.find_spec('{package}')"],
                          capture_output=True).returncode == 0


@unittest.skipUnless(has("lightning"), f"skipped: {PYTHON} has no lightning")
class Lightning(TracedRun):
    """Its launchers of several processes."""

    def launched(self, strategy):
        done = self.trace(LIGHTNING, strategy, mode="watch")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("mp-trace: next:"), 1, done.stderr)
        self.assertIn("4 steps, 2 ranks", done.stderr)
        status, text = self.gate()
        self.assertEqual(status, 0, text)

    def test_a_script_for_each_rank(self):
        self.launched("ddp")

    @unittest.skipUnless(LONG, "left to --long")
    def test_spawned_ranks(self):
        self.launched("ddp_spawn")

    def test_forked_ranks(self):
        self.launched("ddp_fork")


KERNEL = """{"cells": [
 {"cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": %s},
 {"cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": "train(model, optimizer)"}],
 "metadata": {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}, "nbformat": 4,
 "nbformat_minor": 5}
"""


@unittest.skipUnless(has("ipykernel") and has("nbconvert"), f"skipped: {PYTHON} has no ipykernel and nbconvert")
class Notebooks(TracedRun):
    def test_a_notebook_that_a_kernel_runs(self):
        text = PLAIN[:PLAIN.index("train(model, optimizer)")]
        with open(os.path.join(self.top, "book.ipynb"), "w", encoding="utf-8") as f:
            f.write(KERNEL % json.dumps(text))
        done = self.trace("", mode="watch", command=[PYTHON, "-m", "nbconvert", "--to", "notebook", "--execute",
                                                     "book.ipynb", "--output", "done.ipynb"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 steps, 1 rank", done.stderr)
        self.assertEqual(self.gate()[0], 0)


if __name__ == "__main__":
    unittest.main()
