"""A process with two devices, each with a rank of its own, under mp-trace on the fakes.

usage: two_devices_test.py MP_TRACE TWO_DEVICES FAKES
"""
import functools
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

import on_fakes
from on_fakes import run

MP_TRACE, PROGRAM, FAKES = (os.path.realpath(path) for path in sys.argv[1:4])
environment = functools.partial(on_fakes.environment, FAKES)
# A note of a busy machine: a call that was only made, because another thread held the device for 5 ms.
WAITED = "calls of libraries while another thread waited for the device"
# And one whose step another thread ended before it returned.
UNMEASURED = "calls of libraries whose tensors were not measured"


def found(report):
    return {f["rule"] for f in report["findings"] if f["severity"] in ("error", "warning")}


class TwoDevices(unittest.TestCase):

    WAYS = ("all", "group", "threads", "split")

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="two-devices-")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)

    def train(self, how, *words, **more):
        """Trains once without mp-trace and once with it; the report and the dump of the recordings. On a busy machine
        a thread may wait for another one, and calls are counted instead of recorded or measured: then again."""
        alone = run([PROGRAM, how, *words], environment(**more))
        self.assertTrue(alone.stdout.endswith(b"done\n"), alone)
        for trial in range(5):
            into = os.path.join(self.top, "-".join((how, *words, str(trial))))
            traced = run([MP_TRACE, "-q", "-o", into, "--", PROGRAM, how, *words], environment(**more))
            self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (0, alone.stdout, b""))
            report = json.loads(run([MP_TRACE, "report", into, "--json", "-"], environment()).stdout)
            if all(n["text"] not in (WAITED, UNMEASURED) for n in report["notes"]):
                break
        dump = "".join(run([MP_TRACE, "dump", os.path.join(into, name)], environment()).stdout.decode()
                       for name in os.listdir(into) if name.endswith(".mpt"))
        return report, dump

    def test_each_rank_has_records_of_its_own(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                report, dump = self.train(how, "healthy")
                self.assertEqual(found(report), set())
                # Its products are in fp16, and it does not forbid sums in fp16. On a busy machine a thread may wait.
                self.assertEqual([n["text"] for n in report["notes"] if n["kind"] != "end" and n["text"] != WAITED],
                                 ["products that leave it to cuBLAS whether it adds in 16 bits"])
                self.assertEqual(len(report["steps"]), 5)
                # The process has no rank of its own, and nothing is missing.
                run_of = report["run"]
                self.assertEqual((run_of["world_size"], run_of["ranks_seen"], run_of["ranks_missing"]), (None, [], []))
                process = run_of["processes"][0]
                self.assertEqual(process["local_ranks"], 2)
                self.assertRegex(process["members"],
                                 "^rank 0 on device 0, rank 1 on device 1 of communicator [0-9a-f]{4}$")
                # Two sums of each rank in each step, and a product of each device in each layer. What was not recorded
                # because a thread waited is counted.
                steps = dump.split("\nstep ")
                self.assertEqual(len(steps), 5 + 1)
                missed = sum(n["count"] for n in report["notes"] if n["text"] == WAITED)
                seen = sum(int(calls) for calls in re.findall(r"^  (?:collective|op) .* calls=(\d+) ", dump, re.M))
                self.assertEqual(seen + missed, 5 * (2 * 2 + 2 * 2))
                for step in steps[1:] if missed == 0 else []:
                    sums = [line for line in step.splitlines() if line.startswith("  collective ")]
                    self.assertEqual(len(sums), 2)
                    self.assertTrue(all(" calls=2 " in line and " finite_inputs=2 " in line for line in sums), sums)
                    self.assertEqual({line.split(" member=")[1] for line in sums},
                                     {"1 device=2", "2 device=1"} if how == "split" else {"1 device=1", "2 device=2"})
                    ops = [line for line in step.splitlines() if line.startswith("  op ")]
                    self.assertEqual(len(ops), 4)
                    self.assertEqual(sum(" calls=1 " in line for line in ops), 4)
                    self.assertEqual(sum(" device=2 " in line for line in ops), 2)
                # What both sent and received was put together, and each device's weights were compared on it.
                self.assertGreaterEqual(report["collectives"][0]["sketched_blocks"], 32)
                self.assertEqual(report["collectives"][0]["differing_blocks"], 0)
                weights = {p["name"] for p in report["parameters"]}
                self.assertEqual(weights, {"weight of device 0", "weight of device 1"})

    def test_the_overflow_of_a_device_has_its_number(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                report, _ = self.train(how)
                cause = report["findings"][0]
                self.assertEqual((cause["rule"], cause["layer"], cause["step"], cause["rank"], cause["device"]),
                                 ("MPT001", "Layer 1", 3, None, 1))
                self.assertEqual(report["first_overflow"]["device"], 1)

    def test_a_sum_that_overflows_is_known_without_another_process(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                report, _ = self.train(how, "large")
                found = next(f for f in report["findings"] if f["rule"] == "MPT050")
                self.assertRegex(found["message"], "finite on every rank, first on rank 0 of communicator "
                                                   f"[0-9a-f]{{4}} on device {'1' if how == 'split' else '0'}$")

    def test_a_sum_of_multiplied_values_is_compared_with_them(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                report, _ = self.train(how, "premultiplied")
                (collective,) = report["collectives"]
                self.assertEqual((collective["reduction"], collective["calls"]), ("premul_sum", 2 * 5 * 2))
                self.assertGreaterEqual(collective["sketched_blocks"], 32)
                self.assertEqual(collective["differing_blocks"], 0)
                # Two roundings, of the product and of the sum; not more. A factor that was missed is off by half.
                self.assertLess(collective["worst_phi"], 3)
                self.assertEqual(found(report), set())

    def test_a_factor_in_device_memory_is_not_known(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                report, _ = self.train(how, "premultiplied-late")
                (collective,) = report["collectives"]
                self.assertEqual((collective["reduction"], collective["calls"], collective["sketched_blocks"]),
                                 ("premul_sum", 2 * 5 * 2, 0))
                self.assertEqual(found(report), set())

    def test_whatever_fails_the_program_notices_nothing(self):
        for fault in ("cuCtxPushCurrent_v2=201", "cuCtxPopCurrent_v2#3=201", "cuStreamGetCtx=400", "cuCtxGetId=201",
                      "cuCtxGetDevice=201", "cuPointerGetAttribute=1", "cuEventRecord#5=400",
                      "cuModuleLoadData#2=209", "cuLaunchKernel#9=719"):
            told = os.path.join(self.top, "faults " + fault)
            for how in self.WAYS:
                with self.subTest(fault=fault, how=how):
                    self.train(how, MP_FAKE_CUDA=fault, MP_FAKE_CUDA_FAULTS=told)
            with self.subTest(fault=fault), open(told, encoding="utf-8") as file:
                self.assertEqual(set(file.read().split()), {re.split("[#=]", fault)[0]})  # it was met

    def test_the_launcher_has_the_last_word(self):
        report, _ = self.train("all", "healthy", RANK="3", WORLD_SIZE="4", LOCAL_RANK="3")
        self.assertEqual(report["run"]["ranks_seen"], [3])
        self.assertEqual(report["run"]["ranks_missing"], [0, 1, 2])

    def test_late_streams(self):
        for how in self.WAYS:
            with self.subTest(how=how):
                report, _ = self.train(how, "healthy", MP_FAKE_CUDA_LATE="300")
                self.assertEqual(found(report), set())
                self.assertEqual(len(report["steps"]), 5)


unittest.main(argv=sys.argv[:1] + sys.argv[4:])
