"""The runner of reported faults, with a fake mp-trace: what counts as right, as silent, and as reproduced."""
import argparse
import os
import sys
import tempfile
import unittest

import reports

FOUND = {"severity": "error", "rule": "MPT001", "layer": "gate", "op": "aten::softplus", "phase": "forward", "step": 0}
OTHER = {**FOUND, "rule": "MPT010", "layer": "skip"}
ENTRY = reports.load()["softplus-beta"]
PROGRAM = 'echo step 0; case "$*" in *--fixed*) echo shows: no;; *) echo shows: yes;; esac'


def mode(fault, fixed=(), same=True):
    return {"fault": {"same": same, "gate": 1, "trouble": "", "findings": list(fault)},
            "fixed": {"same": True, "gate": 0, "trouble": "", "findings": list(fixed)}}


class VerdictTest(unittest.TestCase):
    def test_first_finding_at_its_place(self):
        told = reports.verdict(ENTRY, mode([FOUND, OTHER]))
        self.assertTrue(told["first"] and told["listed"] and told["place"] and told["silent"] and told["same"])

    def test_right_one_behind_another(self):
        told = reports.verdict(ENTRY, mode([OTHER, FOUND]))
        self.assertFalse(told["first"])
        self.assertTrue(told["listed"])

    def test_nothing_said_and_a_fix_that_is_not_silent(self):
        told = reports.verdict(ENTRY, mode([], [OTHER], same=False))
        self.assertEqual(told["said"], "nothing")
        self.assertFalse(told["first"] or told["listed"] or told["place"] or told["silent"] or told["same"])

    def test_a_range_of_steps(self):
        case = reports.case_of(reports.load()["loss-total"])
        self.assertIn(378, case.step)
        self.assertNotIn(99, case.step)


class ListTest(unittest.TestCase):
    def test_every_report_has_a_program(self):
        for name in ("list.toml", "list-2.toml", "list-traincheck.toml"):
            for entry in reports.load(name).values():
                with open(reports.case_of(entry).program, encoding="utf-8") as f:
                    self.assertIn(entry["address"], f.readline())


class MeasureTest(unittest.TestCase):
    def measured(self, traced):
        """`measure` of an entry whose program and mp-trace are scripts; `traced`: what the program prints then."""
        with tempfile.TemporaryDirectory() as folder:
            python, tool = os.path.join(folder, "python"), os.path.join(folder, "mp-trace")
            for path, text in ((python, PROGRAM),
                               (tool, "case $1 in report) echo '{\"findings\": [], \"coverage\": {\"ops\": 1}}';; "
                                      f"gate) exit 0;; *) echo mp-trace: hello; {traced};; esac")):
                with open(path, "w", encoding="utf-8") as f:
                    f.write("#!/bin/sh\n" + text + "\n")
                os.chmod(path, 0o755)
            options = argparse.Namespace(mp_trace=tool, python=python, device="cpu", keep=folder, modes="watch")
            return reports.measure(options, ENTRY)

    def test_reproduced_and_equal(self):
        line = self.measured(PROGRAM)
        self.assertEqual(line["shows"], {"fault": "yes", "fixed": "no"})
        self.assertTrue(line["modes"]["watch"]["fault"]["same"] and line["modes"]["watch"]["fixed"]["same"])

    def test_another_loss_under_mp_trace(self):
        self.assertFalse(self.measured("echo step 1; echo shows: yes")["modes"]["watch"]["fault"]["same"])


if __name__ == "__main__":
    sys.exit(unittest.main())
