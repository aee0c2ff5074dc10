"""The runner, with a fake mp-trace: what it reads, when there is no verdict, and its exit status."""
import argparse
import os
import sys
import tempfile
import unittest

import evaluate
import page
import programs
import score

CASE = programs.Case("bug", "cases.py", why="known", layer=["a"], op=["aten::add"], phase=["forward"], step=[0],
                     rules=["MPT001"])
CONTROL = programs.Case("clean", "cases.py", control="nothing is wrong")
FINDING = ('{"rule": "MPT001", "severity": "error", "layer": "a", "op": "aten::add", "phase": "forward", "step": 0},'
           '{"rule": "MPT031", "severity": "note", "layer": "b", "op": "", "phase": "forward", "step": 0}')


class RunnerTest(unittest.TestCase):
    def run_fake(self, report, run=0, gate=1):
        """`trace` of CASE where mp-trace is a script that answers so."""
        with tempfile.TemporaryDirectory() as folder:
            tool = os.path.join(folder, "mp-trace")
            with open(tool, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\ncase $1 in report) cat <<'END'\n{report}\nEND\n;; gate) exit {gate};; "
                        f"*) echo trouble; exit {run};; esac\n")
            os.chmod(tool, 0o755)
            options = argparse.Namespace(mp_trace=tool, python=sys.executable, device="cpu", mode="trajectory")
            return evaluate.trace(options, CASE, False, 1, os.path.join(folder, "work"))

    def test_findings_are_read_and_notes_left_out(self):
        outcome = self.run_fake(f'{{"findings": [{FINDING}], "coverage": {{"ops": 70}}}}')
        self.assertEqual((outcome.fault, len(outcome.findings), outcome.ops, outcome.gate), ("", 1, 70, 1))
        self.assertTrue(score.right(outcome))

    def test_what_is_no_verdict(self):
        fine = '{"findings": [], "coverage": {"ops": 1}}'
        self.assertIn("ended with 3: trouble", self.run_fake(fine, run=3).fault)
        self.assertIn("cannot be read", self.run_fake("not json").fault)
        self.assertIn("cannot be read", self.run_fake("{}").fault)
        self.assertIn("gate ended with 3", self.run_fake(fine, gate=3).fault)

    def test_a_miss_must_be_known_and_a_known_miss_must_be_one(self):
        missed = score.Outcome(CASE, False, 1, [], 0)
        found = self.run_fake(f'{{"findings": [{FINDING}], "coverage": {{"ops": 1}}}}')
        self.assertEqual(len(evaluate.judge([missed], {})), 1)
        self.assertEqual(evaluate.judge([missed], {"bug": "because"}), [])
        self.assertEqual(evaluate.judge([found], {}), [])
        self.assertEqual(len(evaluate.judge([found], {"bug": "because"})), 1)

    def test_false_alarms_are_counted_on_programs_without_a_bug_only(self):
        alarm = {"rule": "MPT010"}
        outcomes = [score.Outcome(CASE, False, 1, [alarm], 1, 100), score.Outcome(CASE, True, 1, [alarm], 1, 1000),
                    score.Outcome(CONTROL, False, 1, [], 0, 2000),
                    score.Outcome(CONTROL, False, 2, [], 0, 4000, fault="none")]
        self.assertEqual(page.alarms(outcomes), (1, 3000, 1, 2))

    def test_the_page_keeps_what_others_wrote(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.md")
            with open(path, "w", encoding="utf-8") as f:
                f.write("a\n<!-- x: written by a script -->\nold\n<!-- end of x -->\nb\n")
            page.write(path, "x", "new \\1")
            with open(path, encoding="utf-8") as f:
                self.assertEqual(f.read(), "a\n<!-- x: written by a script -->\n\nnew \\1\n\n<!-- end of x -->\nb\n")
            with self.assertRaises(SystemExit):
                page.write(path, "y", "new")

    def test_the_table_has_a_row_for_each_bug(self):
        outcomes = [score.Outcome(CASE, False, 1, [], 0), score.Outcome(CASE, True, 1, [], 0),
                    score.Outcome(CONTROL, False, 1, [], 0)]
        rows = [line for line in page.bugs(page.grouped(outcomes)).splitlines() if line.startswith("| bug")]
        self.assertEqual(len(rows), 1)
        self.assertIn("| 0/1 |", rows[0])
        self.assertTrue(rows[0].endswith("| 1/1 |"))


if __name__ == "__main__":
    unittest.main()
