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

    def test_whatever_fails_the_program_notices_nothing(self):
        for fault in ("ncclCommCount=3", "ncclCommUserRank=3", "ncclCommCuDevice=3", "ncclCommCount#2=7",
                      "ncclCommUserRank#5=1"):
            for how in ("pipeline", "moves", "late"):
                with self.subTest(fault=fault, how=how):
                    self.trace(how, MP_FAKE_CUDA=fault)


unittest.main(argv=sys.argv[:1] + sys.argv[4:])
