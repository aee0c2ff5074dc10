"""The score itself: what counts as right, and the table of truth it is held against."""
import dataclasses
import os
import unittest

import programs
import score

CASE = programs.Case("x", "cases.py", layer=["blocks.*"], op=["aten::add"], phase=["forward"], step=[5],
                     rules=["MPT001"])
RIGHT = {"rule": "MPT001", "layer": "blocks.2", "op": "aten::add", "phase": "forward", "step": 5}


def outcome(findings, gate=1, fixed=False):
    return score.Outcome(CASE, fixed, 1, findings, gate)


class ScoreTest(unittest.TestCase):
    def test_all_parts_of_the_first_finding_count(self):
        self.assertTrue(score.right(outcome([RIGHT])))
        for part, wrong in (("rule", "MPT010"), ("layer", "head"), ("op", "aten::mul"), ("phase", "backward"),
                            ("step", 4), ("step", None), ("layer", None)):
            with self.subTest(part=part):
                self.assertFalse(score.right(outcome([{**RIGHT, part: wrong}])))
        self.assertFalse(score.right(outcome([{**RIGHT, "layer": "head"}, RIGHT])))
        self.assertEqual(score.place_of(outcome([{**RIGHT, "layer": "head"}, RIGHT])), 2)

    def test_the_gate_must_agree(self):
        self.assertFalse(score.right(outcome([RIGHT], gate=0)))
        self.assertFalse(score.right(outcome([], gate=1, fixed=True)))
        self.assertFalse(score.right(outcome([RIGHT], gate=0, fixed=True)))
        self.assertTrue(score.right(outcome([], gate=0, fixed=True)))
        self.assertFalse(score.right(outcome([], gate=0)))
        warning = dataclasses.replace(CASE, gate=0)
        self.assertTrue(score.right(score.Outcome(warning, False, 1, [RIGHT], 0)))
        self.assertFalse(score.right(score.Outcome(warning, False, 1, [RIGHT], 1)))

    def test_a_run_without_verdict_is_never_right(self):
        for fixed in (False, True):
            self.assertFalse(score.right(score.Outcome(CASE, fixed, 1, [], 0, fault="no recording")))

    def test_the_interval_of_wilson(self):
        low, high = score.wilson(5, 10)
        self.assertAlmostEqual(low, 0.2366, places=4)
        self.assertAlmostEqual(high, 0.7634, places=4)
        self.assertEqual(score.wilson(0, 100)[0], 0.0)
        self.assertAlmostEqual(score.wilson(0, 100)[1], 0.0370, places=4)
        self.assertEqual(score.wilson(0, 0), (0.0, 1.0))

    def test_every_bug_has_a_complete_truth(self):
        cases = programs.load()
        self.assertGreaterEqual(len([c for c in cases if c.case]), 12)
        for case in cases:
            with self.subTest(case=case.name):
                self.assertTrue(os.path.exists(os.path.join(programs.FOLDER, case.program)))
                truth = (case.layer, case.op, case.phase, case.step, case.rules, case.why)
                self.assertEqual([bool(part) for part in truth], [not case.control] * len(truth))


if __name__ == "__main__":
    unittest.main()
