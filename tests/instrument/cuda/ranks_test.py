"""Three processes of one communicator under mp-trace on the fakes: what they move, and what they reduce beside it.

usage: ranks_test.py MP_TRACE RANKS FAKES
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
RANKS = 3


class Ranks(unittest.TestCase):
    def trace(self, how, **more):
        """The report and the dumps of the ranks, of a run whose output is that of a run without mp-trace."""
        top = tempfile.mkdtemp(prefix="ranks-")
        self.addCleanup(shutil.rmtree, top, ignore_errors=True)
        alone = run([PROGRAM, how], environment(**more))
        self.assertTrue(alone.stdout.endswith(b"done\n"), alone)
        traced = run([MP_TRACE, "-q", "-o", top, "--", PROGRAM, how], environment(**more))
        self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (0, alone.stdout, b""))
        dumps = {}
        for name in os.listdir(top):
            if name.endswith(".mpt"):
                dump = run([MP_TRACE, "dump", os.path.join(top, name)], environment()).stdout.decode()
                dumps[int(re.search(r"^process rank=(\d+)", dump).group(1))] = dump
        self.assertEqual(sorted(dumps), list(range(RANKS)))
        return json.loads(run([MP_TRACE, "report", top, "--json", "-"], environment()).stdout), dumps

    def found(self, report):
        return {f["rule"] for f in report["findings"] if f["severity"] in ("error", "warning")}

    def collectives(self, dump):
        """(op, reduction, dtype) -> the other fields, of each line of a dump."""
        lines = re.findall(r'^  collective "(\w+)" reduction="(\w*)" (\w+) (.*)$', dump, re.M)
        return [(tuple(kind), dict(re.findall(r"(\w+)=(\d+)\b", rest))) for *kind, rest in lines]

    def test_ranks_that_send_unequally_often_are_compared(self):
        """The rank in the middle of a pipeline makes twice as many calls as the others."""
        report, dumps = self.trace("pipeline")
        calls = {rank: sum(int(fields["calls"]) for (op, _, _), fields in self.collectives(dump) if op != "all_reduce")
                 for rank, dump in dumps.items()}
        self.assertEqual(calls, {0: 5, 1: 10, 2: 5})
        (reduced,) = [c for c in report["collectives"] if c["op"] == "all_reduce"]
        self.assertEqual((reduced["calls"], reduced["differing_blocks"]), (RANKS * 5 * 2, 0))
        # 8 blocks of each of two sums in steps 0, 1, 2 and 4.
        self.assertEqual(reduced["sketched_blocks"], 2 * 4 * 8)
        self.assertLess(reduced["worst_phi"], 2)
        self.assertEqual(self.found(report), set())
        # The numbers of the sums are the same on all ranks, without gaps.
        for dump in dumps.values():
            steps = [range(2 * step, 2 * step + 2) for step in (0, 1, 2, 4)]
            self.assertEqual({int(call) for call in re.findall(r"^  sketch .* call=(\d+) ", dump, re.M)},
                             {call for step in steps for call in step})

    def test_what_is_moved_is_recorded_on_each_rank(self):
        report, dumps = self.trace("moves")
        self.assertEqual(self.found(report), set())
        # Bytes that each rank sends: only the root of a broadcast or a scatter sends.
        expected = {("reduce", "max", "bf16"): [600, 600, 600], ("broadcast", "", "fp16"): [0, 0, 1000],
                    ("broadcast", "", "fp32"): [0, 2800, 0], ("send", "", "fp16"): [1800, None, None],
                    ("recv", "", "fp16"): [None, None, 0], ("all_to_all", "", "fp32"): [3 * 440] * 3,
                    ("gather", "", "bf16"): [260, 260, 260], ("scatter", "", "fp16"): [0, 3 * 340, 0]}
        communicators = set()
        for rank, dump in dumps.items():
            first = dump.split("\nstep ")[1]
            calls = dict(self.collectives(first))
            self.assertEqual({kind: int(fields["bytes"]) for kind, fields in calls.items()},
                             {kind: sent[rank] for kind, sent in expected.items() if sent[rank] is not None})
            for kind, fields in calls.items():
                self.assertEqual((fields["calls"], fields["ranks"], fields["member"]), ("1", "3", str(rank + 1)), kind)
                communicators.add(fields["communicator"])
        self.assertEqual(len(communicators - {"0"}), 1)
        # The result of a reduction is at its root.
        for rank, measured in enumerate(("0", "1", "0")):
            reduce = dict(self.collectives(dumps[rank]))["reduce", "max", "bf16"]
            self.assertEqual(reduce["finite_inputs"], measured)

    def test_what_the_root_alone_receives(self):
        with tempfile.TemporaryDirectory(prefix="ranks-events-") as place:
            self.trace("moves", MP_TRACE_EVENTS=os.path.join(place, "events"))
            received = {}
            for name in os.listdir(place):
                with open(os.path.join(place, name), encoding="utf-8") as file:
                    for kind, *fields in (line.rstrip("\n").split("\t") for line in file):
                        if kind == "collective" and fields[0] in ("reduce", "gather", "scatter"):
                            received[fields[0], int(fields[7])] = int(fields[4])
        self.assertEqual(received, {("reduce", 0): 0, ("reduce", 1): 300, ("reduce", 2): 0, ("gather", 0): 0,
                                    ("gather", 1): 0, ("gather", 2): 3 * 130, ("scatter", 0): 170, ("scatter", 1): 170,
                                    ("scatter", 2): 170})

    def test_the_ranks_of_a_shrunk_communicator_are_compared(self):
        report, dumps = self.trace("moves")
        kind = ("all_reduce", "sum", "fp32")
        sums = {rank: [fields for found, fields in self.collectives(dump) if found == kind]
                for rank, dump in dumps.items()}
        self.assertEqual({rank: len(lines) for rank, lines in sums.items()}, {0: 5, 1: 0, 2: 5})
        self.assertEqual({(f["ranks"], f["bytes"]) for f in sums[0] + sums[2]}, {("2", str(2 * 4 << 15))})
        self.assertEqual([{f["member"] for f in sums[rank]} for rank in (0, 2)], [{"1"}, {"2"}])
        (communicator,) = {f["communicator"] for f in sums[0] + sums[2]}
        self.assertNotIn(communicator, {"0", *(f["communicator"] for _, f in self.collectives(dumps[1]))})
        (reduced,) = [c for c in report["collectives"] if (c["op"], c["reduction"], c["dtype"]) == kind]
        self.assertEqual(reduced["sketched_blocks"], 3 * 2 * 8)  # steps 1, 2 and 4

    def test_a_split_after_a_shrink_is_one_communicator(self):
        """The rank that was left out did not make the call for the smaller communicator."""
        _, dumps = self.trace("moves")
        kind = ("all_reduce", "sum", "fp16")
        (number,) = {fields["communicator"] for dump in dumps.values()
                     for found, fields in self.collectives(dump) if found == kind}
        self.assertNotEqual(number, "0")

    def test_a_communicator_that_does_not_block_is_counted_and_not_measured(self):
        report, dumps = self.trace("late")
        expected = {("all_reduce", "sum", "bf16"): 2 << 15, ("all_reduce", "sum", "fp32"): 4 * 64,
                    ("reduce_scatter", "sum", "bf16"): 2 * 3 << 13}
        for rank, dump in dumps.items():
            calls = self.collectives(dump)
            self.assertEqual(len(calls), 3 * len(expected))
            for kind, fields in calls:
                counted = [int(fields[name]) for name in ("calls", "bytes", "ranks", "member")]
                self.assertEqual(counted, [1, expected[kind], RANKS, rank + 1], kind)
                measured = [int(fields[name]) for name in ("finite_inputs", "lost_inputs", "lost_results")]
                self.assertEqual(measured, [0, 0, 0], kind)
                self.assertNotEqual(fields["communicator"], "0")
        self.assertEqual({c["sketched_blocks"] for c in report["collectives"]}, {0})
        self.assertEqual(self.found(report), set())
        late = {n["text"]: n["count"] for n in report["notes"] if "do not block" in n["text"]}
        self.assertEqual(list(late.values()), [RANKS * 3 * 3])

    def test_whatever_fails_the_program_notices_nothing(self):
        for fault in ("ncclCommCount=3", "ncclCommUserRank=3", "ncclCommCuDevice=3", "ncclCommCount#2=7",
                      "ncclCommUserRank#5=1"):
            for how in ("pipeline", "moves", "late"):
                with self.subTest(fault=fault, how=how):
                    self.trace(how, MP_FAKE_CUDA=fault)


unittest.main(argv=sys.argv[:1] + sys.argv[4:])
