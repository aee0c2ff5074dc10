"""mp-trace beside a training on a device, without a GPU: tests/fakes/torch has one, whose memory the host cannot read
and whose ops run late.

    fake_device_test.py [TEST...]        needs MP_TRACE, the test adapters beside it, and MP_LATE_DEVICE

MP_LONG=1 adds forms of a case that others stand for.
"""
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "truth"))
import compare  # noqa: E402
from late_test import ADAPTERS, differences, timeless  # noqa: E402
from traced import LONG, PYTHON, ROOT, TRACE  # noqa: E402

PROGRAM = os.path.join(ROOT, "tests/fakes/torch/train.py")
SETTINGS = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "MP_FAKE_CUDA_GUARDED": "1",
            "MP_FAKE_CUDA_LATE": "20", "MP_TRACE_TEST_DEVICE": "1"}


def run(command, folder=None, **settings):
    done = subprocess.run(command, cwd=folder, env={**os.environ, **SETTINGS, **settings}, capture_output=True,
                          text=True, timeout=120)
    return done


CASES = ("gpt", "dropout", "foreach", "fused", "scaler", "pictures", "masters", "stream", "recurrent", "given",
         "prefetched")


EXACT = ("calls", "elements", "nan", "pos_inf", "neg_inf", "zeros", "subnormals", "amax", "amin", "compared",
         "nonfinite_real", "nonfinite_twin", "twin_amax")


@functools.lru_cache(maxsize=None)
def untraced(*options):
    """The lines of each case, of one run of all cases."""
    done = run([PYTHON, PROGRAM, ",".join(CASES), *options])
    if done.returncode != 0:
        raise RuntimeError(f"the fake device does not work: {done.stderr[-2000:]}")
    parts = done.stdout.split("case ")[1:]
    return {part.split("\n", 1)[0]: part.splitlines()[1:] for part in parts}


def words(lines, first):
    """{second word: third word} of the lines that begin with `first`."""
    return {line.split()[1]: line.split()[-1] for line in lines if line.startswith(first + " ")}


def of_fp32(case):
    skipped = ",".join(words(untraced()["scaler"], "skipped"))
    return untraced("--fp32", "--skip-steps", skipped)[case]


class Traced:
    """A traced run of one case: its output, its report and its twin."""

    def __init__(self, case, mode="trajectory", device="late", options=(), policy=(), **settings):
        with tempfile.TemporaryDirectory() as folder:
            save = ["--save-twin", "twin"] if mode == "trajectory" else []
            self.done = run([TRACE, "-q", "--mode", mode, "--adapters", ADAPTERS, "-o", "run", *save, "--",
                             PYTHON, PROGRAM, case, "--device", device, *options], folder, **settings)
            self.lines = self.done.stdout.splitlines()[1:]
            told = run([TRACE, "report", "run", "--json", "-", *policy], folder)
            self.report = timeless(json.loads(told.stdout)) if told.returncode == 0 else {}
            twin = os.path.join(folder, "twin")
            self.twin = compare.read_safetensors(twin) if os.path.exists(twin) else {}

    def figures(self):
        """What kernels on both devices give bit for bit, of each op in a layer."""
        layers = {f"{layer['layer']} {layer['phase']}": layer for layer in self.report["layers"]
                  if not layer["layer"].startswith("(")}  # (data): a program copies its batch to a device
        ops = {f"{name} {op['op']} {op['dtype']}": {k: v for k, v in op.items() if k in EXACT}
               for name, layer in layers.items() for op in layer["ops"]}
        return {**ops, **{name: layer["exponents"] for name, layer in layers.items()}}

    def twin_losses(self):
        found = [entry["losses"][0]["twin_loss_hex"] for step in self.report["steps"] for entry in step["ranks"]
                 if entry["losses"] and entry["optimizer"] == 0]
        return [float.fromhex(x) for x in found]


@functools.lru_cache(maxsize=None)
def traced_run(case, *arguments, **settings):
    return Traced(case, *arguments, **settings)


@unittest.skipUnless(os.path.exists(PYTHON) and os.environ.get("MP_LATE_DEVICE"), "skipped: no torch in .venv")
class FakeDevice(unittest.TestCase):
    def check_truth(self, case, **settings):
        plain, traced = untraced()[case], traced_run(case, **settings)
        self.assertEqual(traced.done.returncode, 0, traced.done.stderr[-2000:])
        # Also the number of times that the host has waited for the device.
        self.assertEqual(plain, traced.lines)
        fp32 = of_fp32(case)
        losses = [float.fromhex(x) for x in words(fp32, "loss").values()]
        self.assertNotEqual(list(words(plain, "loss").values()), list(words(fp32, "loss").values()))
        self.assertEqual(losses, traced.twin_losses())
        hashes = {name: hashlib.sha256(values).hexdigest()[:16] for name, (_, _, values) in traced.twin.items()}
        for name, expected in words(fp32, "weight").items():
            self.assertEqual(expected, hashes[name], name)
        return traced

    @unittest.skipUnless(LONG, "left to --long: dropout has all of it")
    def test_gpt(self):
        self.check_truth("gpt")

    def test_dropout(self):
        self.check_truth("dropout")

    def test_foreach(self):
        self.check_truth("foreach")

    def test_fused(self):
        self.check_truth("fused")

    def test_scaler(self):
        self.assertIn("skipped", " ".join(untraced()["scaler"]))
        self.check_truth("scaler")

    def test_pictures(self):
        self.check_truth("pictures")

    def test_backwards_of_convolutions_are_ieee_in_the_twin(self):
        """The setting is of the process: only the twin's calls are without TF32."""
        usual, traced = traced_run("pictures"), Traced("pictures", MP_LATE_CUDNN="1", MP_LATE_TELL="1")
        self.assertEqual(traced.lines, usual.lines)
        asked = re.search(r"backwards of cuDNN: (\d+) without TF32, 0 with it; 0 of the", traced.done.stderr)
        self.assertTrue(asked, traced.done.stderr[-500:])
        self.assertGreater(int(asked[1]), 0)
        self.assertEqual(len(traced.twin_losses()), 6)
        for mine, others in zip(traced.twin_losses(), usual.twin_losses()):
            self.assertAlmostEqual(mine, others, delta=1e-5)

    def test_tf32_of_the_run_is_recorded(self):
        """cuBLAS would round here; the device only says that it can."""
        forms = ((True, {}), (True, {"NVIDIA_TF32_OVERRIDE": "0"}), (False, {}),
                 (True, {"MP_FAKE_CUDA_CAPABILITY": "75"}))
        for on, settings in forms if LONG else forms[:2]:
            with self.subTest(on=on, settings=settings):
                traced = Traced("gpt", "watch", options=["--fp32", *(["--tf32"] if on else [])],
                                policy=["--policy", "tf32:matmul=off"], **settings)
                self.assertEqual(traced.done.returncode, 0, traced.done.stderr[-2000:])
                rounds = on and not settings
                computed = {p["dtype"] for p in traced.report["dtype_map"] if p["role"] == "activation"}
                self.assertEqual("fp32 (TF32)" in computed, rounds, computed)
                found = [f["op"] for f in traced.report["findings"] if f["rule"] == "MPT060"]
                self.assertEqual(bool(found), rounds, found)
                if rounds:
                    self.assertIn(found[0], ("aten::addmm", "aten::mm", "aten::bmm"))

    def test_a_stream_of_the_program(self):
        self.check_truth("stream")

    def test_batches_that_another_stream_prepares(self):
        # So late that the host frees memory of a step while the device is still in the one before.
        self.check_truth("prefetched", MP_FAKE_CUDA_LATE="2000")

    def test_recurrent(self):
        self.check_truth("recurrent")

    def test_a_given_gradient_is_not_waited_for(self):
        """The steps are inferred, and the root gradient is on the device."""
        traced = self.check_truth("given")
        self.assertEqual(len(traced.report["steps"]), 6)

    def test_own_masters(self):
        """16-bit weights that stand still while their fp32 masters move are not stuck."""
        self.check_truth("masters")
        self.assertNotIn("MPT040", [f["rule"] for f in Traced("masters", "watch").report["findings"]])

    def test_figures_are_those_of_the_cpu(self):
        late, cpu = traced_run("masters").figures(), Traced("masters", device="cpu").figures()
        self.assertGreater(len(cpu), 30)
        self.assertEqual(differences(late, cpu), [])

    def test_a_full_queue(self):
        """No lock is held while a copy of the twin, or a measuring kernel, waits for another thread's op."""
        for op in ("seed", "lanes", "measure", "step"):
            with self.subTest(op), tempfile.TemporaryDirectory() as folder:
                done = run([TRACE, "-q", "--mode", "trajectory", "--adapters", ADAPTERS, "-o", "run", "--", PYTHON,
                            os.path.join(os.path.dirname(PROGRAM), "full_queue.py"), op], folder)
                self.assertEqual((done.returncode, done.stdout), (0, "waited True\n"), done.stderr[-2000:])

    def check_fault(self, **settings):
        faulty = Traced("gpt", **settings)
        self.assertEqual(faulty.done.returncode, 0, faulty.done.stderr[-2000:])
        self.assertEqual(untraced()["gpt"], faulty.lines)
        return faulty

    def test_a_launch_is_refused(self):
        if LONG: self.check_fault(MP_FAKE_CUDA="cuLaunchKernel#40=719")
        self.check_fault(MP_FAKE_CUDA="cuLaunchKernel=719")

    def test_memory_is_refused(self):
        self.check_fault(MP_FAKE_CUDA="cuMemAlloc_v2=2,cuMemHostAlloc=2")

    def test_the_program_gets_the_memory_of_the_twin(self):
        """With 1.02 times the memory that it needs alone, and with more. What was not compared is not reported."""
        told = run([PYTHON, PROGRAM, "gpt"], MP_LATE_TELL="1").stderr
        most = int(told.split("late: at most ")[1].split()[0])
        for room in (1.02, 1.3, 1.8) if LONG else (1.3,):
            with self.subTest(room):
                traced = self.check_fault(MP_LATE_MEMORY=str(int(room * most)))
                self.assertIn("the twin was given up", " ".join(traced.report["verdict"]["inconclusive"]))
                self.assertEqual(traced.twin, {})
                self.assertEqual([f["rule"] for f in traced.report["findings"] if f["severity"] == "error"], [])

    def test_no_event_passes(self):
        self.check_fault(MP_LATE_EVENTS="never")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
