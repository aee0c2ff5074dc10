"""The truth suite's own eyes: planted differences are found, and what is no difference is not.

Usage: self_test.py [REPOSITORY]. Needs no torch.
"""
import json
import math
import os
import struct
import sys
import tempfile
import unittest

import compare
import runs
import table
from cases import CASES, MUTATIONS, TORCHRUN, UNREACHABLE, VARIANTS, VARIANTS_OF, Case, Inexact, in_ci


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def tensor(*values):
    return "F32", (len(values),), floats(*values)


def file_of(path, tensors, losses):
    header, blob = {"__metadata__": {"by": "test"}}, b""
    for name, (dtype, shape, data) in {**tensors, "losses": ("F64", (len(losses),), struct.pack(
            f"<{len(losses)}d", *losses))}.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def result(case, exact, faults=(), **counters):
    return runs.Result(case, 1, list(faults), exact, True, counters=counters)


PLAIN = Case("plain", "amp_gpt.py")
KNOWN = Case("known", "amp_gpt.py", inexact=Inexact("values left", "leaks"))


class Comparison(unittest.TestCase):
    def test_the_last_bit_of_one_element_is_a_difference(self):
        one = floats(1.0, 2.0, 3.0)
        other = bytes([one[0] ^ 1]) + one[1:]
        self.assertEqual(compare.differing_elements(one, other), (1, 0))

    def test_a_sign_of_zero_is_counted_apart(self):
        self.assertEqual(compare.differing_elements(floats(0.0, 1.0), floats(-0.0, 1.0)), (0, 1))
        matches = compare.match_names({"w": tensor(0.0, 1.0)}, {"w": tensor(-0.0, 1.0)})
        self.assertTrue(matches["parameters"].exact())
        self.assertEqual(matches["parameters"].zero_signs, 1)

    def test_a_small_number_is_no_zero(self):
        self.assertEqual(compare.differing_elements(floats(0.0), floats(1e-45)), (1, 0))

    def test_equal_nans_are_equal_and_another_nan_is_not(self):
        nan = struct.pack("<I", 0x7fc00000)
        self.assertEqual(compare.differing_elements(nan, nan), (0, 0))
        self.assertEqual(compare.differing_elements(nan, struct.pack("<I", 0x7fc00001)), (1, 0))

    def test_what_the_twin_does_not_have_is_a_difference(self):
        matches = compare.match_names({"w": tensor(1.0), "grad/w": tensor(2.0)}, {"w": tensor(1.0)})
        self.assertTrue(matches["parameters"].exact())
        self.assertFalse(matches["gradients"].exact())
        self.assertIn("not in the twin's file", matches["gradients"].wrong[0])

    def test_another_shape_is_a_difference_even_with_equal_bytes(self):
        square = ("F32", (2, 2), floats(1, 2, 3, 4))
        row = ("F32", (4,), floats(1, 2, 3, 4))
        self.assertFalse(compare.match_names({"w": square}, {"w": row})["parameters"].exact())

    def test_each_kind_has_its_column(self):
        kinds = [compare.kind_of(n) for n in ("a.weight", "grad/a.weight", "optim/a.weight.exp_avg", "master.exp_avg")]
        self.assertEqual(kinds, ["parameters", "gradients", "optimizer", "optimizer"])

    def test_without_names_each_tensor_is_found_once(self):
        reference = {"a": tensor(1.0), "b": tensor(1.0), "c": tensor(-0.0)}
        twin = {"parameter0": tensor(1.0), "parameter1": tensor(1.0), "parameter2": tensor(0.0)}
        self.assertTrue(compare.match_contents(reference, twin)["parameters"].exact())
        del twin["parameter1"]
        self.assertEqual(compare.match_contents(reference, twin)["parameters"].equal, 2)

    def test_losses_are_compared_by_bits_and_by_number(self):
        self.assertTrue(compare.match_losses([1.0, 2.0], [1.0, 2.0]).exact())
        self.assertFalse(compare.match_losses([1.0, 2.0], [1.0, math.nextafter(2.0, 3.0)]).exact())
        self.assertFalse(compare.match_losses([1.0, 2.0], [1.0]).exact())
        self.assertFalse(compare.match_losses([1.0], [1.0, 2.0]).exact())
        self.assertFalse(compare.match_losses([1.0], [None]).exact())

    def test_files_are_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.0")
            file_of(path, {"w": tensor(1.5, -2.0)}, [0.25, 0.125])
            read = compare.read_safetensors(path)
        self.assertEqual(read["w"], tensor(1.5, -2.0))
        self.assertEqual(compare.losses_of(read), [0.25, 0.125])

    def test_gaps_are_relative_to_the_largest_element(self):
        self.assertEqual(compare.largest_gap(floats(1.0, 4.5), floats(1.0, 4.0)), 0.125)
        self.assertEqual(compare.largest_gap(floats(math.nan), floats(1.0)), math.inf)


class Judgement(unittest.TestCase):
    def test_exact_is_green_and_inexact_is_red(self):
        self.assertFalse(runs.verdict(result(PLAIN, True))[0])
        self.assertTrue(runs.verdict(result(PLAIN, False))[0])

    def test_lost_histories_and_failed_ops_are_red_even_when_exact(self):
        for counter in ("lost", "failed"):
            self.assertTrue(runs.verdict(result(PLAIN, True, **{counter: 1}))[0])

    def test_a_known_exception_needs_its_counter(self):
        self.assertFalse(runs.verdict(result(KNOWN, False, leaks=3))[0])
        self.assertTrue(runs.verdict(result(KNOWN, False, leaks=0))[0])

    def test_an_unexpected_success_is_red(self):
        self.assertTrue(runs.verdict(result(KNOWN, True, leaks=3))[0])

    def test_a_fault_is_red_whatever_is_expected(self):
        self.assertTrue(runs.verdict(result(KNOWN, False, ["another stdout"], leaks=3))[0])

    def traced(self, folder, out=b"", err=b"", status=0, saved=b"x"):
        for kind, data in (("plain", b"x"), ("traced", saved)):
            os.makedirs(os.path.join(folder, kind))
            with open(os.path.join(folder, kind, "result.0"), "wb") as f:
                f.write(data)
        checked = runs.Result(PLAIN, 1)
        runs.check_transparent(checked, os.path.join(folder, "plain"), os.path.join(folder, "traced"),
                               (0, b"", b""), (status, out, err))
        return checked

    def test_harm_to_the_program_is_seen(self):
        for harm in ({"out": b"step"}, {"status": 1}, {"saved": b"y"}, {"err": b"oops mp-trace: hm\n"}):
            with tempfile.TemporaryDirectory() as folder:
                self.assertFalse(self.traced(folder, **harm).transparent, harm)
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(self.traced(folder, err=b"mp-trace: fine\n").transparent)

    def test_a_low_run_that_is_the_fp32_run_shows_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind, weight in (("plain", 1.0), ("same", 1.0), ("fp32", 1.25)):
                os.makedirs(os.path.join(folder, kind))
                file_of(os.path.join(folder, kind, "result.0"), {"w": tensor(weight)}, [weight])
            for other, red in (("same", True), ("fp32", False)):
                checked = runs.Result(PLAIN, 1)
                runs.check_discriminates(checked, PLAIN, os.path.join(folder, "plain"), os.path.join(folder, other))
                self.assertEqual(bool(checked.faults), red)

    def test_losses_of_the_twin_come_from_the_first_optimizer(self):
        entry = {"rank": None, "optimizer": 0, "losses": [{"twin_loss_hex": "0x1.8p+1"}, {"twin_loss_hex": "0x1p+0"}]}
        other = {"rank": None, "optimizer": 1, "losses": [{"twin_loss_hex": "0x1p+9"}]}
        report = {"steps": [{"step": 0, "ranks": [entry, other]}]}
        self.assertEqual(runs.twin_losses(report, "first"), {0: [3.0]})
        self.assertEqual(runs.twin_losses(report, "last"), {0: [1.0]})
        self.assertEqual(runs.twin_losses(report, "all"), {0: [3.0, 1.0]})

    def test_skipped_steps_are_read_from_what_the_program_prints(self):
        text = "step 0 loss 4.4 0x1.1ap+2 scale 4194304 skipped\nstep 1 loss 4.3 0x1p+2 scale 2097152\n"
        self.assertEqual(runs.SKIPPED.findall(text), ["0"])


class Tables(unittest.TestCase):
    def test_names_are_unique_and_every_rule_has_a_case_of_its_torch(self):
        names = [case.name for case in CASES]
        self.assertEqual(len(names), len(set(names)))
        torches = {case.name: case.torches for case in CASES}
        for rule, (name, torch) in MUTATIONS.items():
            self.assertIn(torch, torches[name], rule)
        for case in CASES:
            if (case.name, "2.11") in MUTATIONS.values():
                self.assertTrue(in_ci(case, "2.11"), f"{case.name} proves a rule, but only --long runs it")
        self.assertFalse(set(MUTATIONS) & set(UNREACHABLE))
        self.assertLessEqual(VARIANTS | TORCHRUN | VARIANTS_OF["2.11"] | VARIANTS_OF["debian"], set(names))
        for case in CASES:
            self.assertTrue(case.inexact is None or case.inexact.counter in ("", "lost", *runs.COUNTERS), case.name)

    def test_a_section_is_replaced_and_the_others_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "truth.md")
            for title, line in (("torch 2.11 (2.11.0)", "one"), ("torch debian (1.13)", "two"),
                                ("Rules switched off, torch 2.11", "three"), ("torch 2.11 (2.11.1)", "four")):
                table.write(path, title, [line], 1)
            with open(path, encoding="utf-8") as f:
                text = f.read()
        self.assertNotIn("one", text.split("## ", 1)[1].split())
        for line in ("two", "three", "four"):
            self.assertIn(line, text.split())

    def test_the_row_says_when_a_case_is_red(self):
        self.assertIn("RED", table.row([result(PLAIN, False)]))
        self.assertIn("exact", table.row([result(PLAIN, True)]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
