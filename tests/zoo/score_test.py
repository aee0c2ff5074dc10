"""The scoring of the zoo: its order, its marks, its counters, and the places of mutants and public bugs."""
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE, os.path.join(HERE, "public"), os.path.join(HERE, "strangers")]
import defects  # noqa: E402
import mutants  # noqa: E402
import public  # noqa: E402
import score  # noqa: E402
import tables  # noqa: E402
import zoo  # noqa: E402

NAMES = [f"g\tp.py\tname{i}\n" for i in range(40)] + ["engines\tengines.py\taccelerate\n", "# a comment\n"]


def finding(rule="MPT010", severity="error", layer="a.b", op="aten::mm", phase="backward"):
    return {"rule": rule, "severity": severity, "layer": layer, "op": op, "phase": phase}


def line(**more):
    return {"key": "llama/bf16-pure", "group": "g", "regime": "bf16-pure", "mode": "trajectory", "ran": True,
        "exact": True,
            "transparent": True, "faults": [], "steps_right": True, "layers": "3/3", "layers_strange": [],
            "losses": "5/5",
            "twin": {"parameters": "3/3"}, "counters": {}, "findings": [], "verdict": "pass"} | more


class Order(unittest.TestCase):
    def test_each_round_has_every_program_once(self):
        order = list(zoo.in_order(NAMES))
        self.assertEqual(len(order), 4 * 40 + 1)
        self.assertEqual(len({p.name for p in order[:41]}), 41)
        self.assertEqual(len({p.key for p in order}), len(order))
        self.assertEqual(order, list(zoo.in_order(NAMES)))
        self.assertNotEqual([p.name for p in order[:41]], [n.split("\t")[2].strip() for n in NAMES[:41]])

    def test_regimes_only_where_the_library_has_them(self):
        self.assertEqual({p.regime for p in zoo.in_order(NAMES) if p.name == "accelerate"}, {"bf16-autocast"})


class Marks(unittest.TestCase):
    MARKS = [{"key": "*/bf16-pure", "rule": "MPT040", "true": True, "why": "no master weights"},
             {"rule": "MPT010", "op": "aten::mm", "phase": "backward", "true": False, "why": "a kernel"}]

    def test_a_finding_without_a_mark_is_unread(self):
        self.assertIsNone(score.mark_of(line(), finding("MPT001"), self.MARKS))
        self.assertIsNone(score.mark_of(line(), finding(phase="forward"), self.MARKS))
        self.assertIsNone(score.mark_of(line(), finding("MPT9"), [{"rule": "MPT9", "message": "buffer *"}]))
        self.assertIsNone(score.mark_of(line(key="llama/fp16-scaler"), finding("MPT040"), self.MARKS))

    def test_counts_by_severity_and_mark(self):
        found = line(findings=[finding(), finding("MPT040", "warning"), finding("MPT001")])
        self.assertEqual(score.counts(found, self.MARKS),
                         {("error", "false"): 1, ("warning", "true"): 1, ("error", "unread"): 1})

    def test_the_table_counts_false_errors(self):
        row = tables.zoo_row("g", [line(findings=[finding()]), line(), line(ran=False)], self.MARKS)
        self.assertEqual(row[1], "2/3")
        self.assertEqual(row[-3:], ["0 + 1", "0 + 0", "1/2"])


class Report(unittest.TestCase):
    def test_lost_is_what_had_a_history(self):
        report = {"coverage": {"ops": 5, "seeds_after_step_0": 3, "external_after_step_0": 1, "flips": 2},
            "steps": [1, 2],
                  "layers": [{"layer": "a"}, {"layer": "(data)"}, {"layer": "CrossEntropyLoss"}, {"layer": "odd"}],
                  "notes": [], "verdict": {"result": "pass", "headline": "", "inconclusive": []},
                  "findings": [finding(severity="note"), finding()]}
        part = score.of_report(report, {"ran": ["", "a", "b"], "all": ["", "a", "b"]})
        self.assertEqual(part["counters"]["lost"], 2)
        self.assertEqual((part["layers"], part["layers_missing"], part["layers_strange"]), ("1/2", ["b"], ["odd"]))
        self.assertEqual(len(part["findings"]), 1)
        self.assertEqual(score.explained(part), {"flips": 2, "lost": 2})

    def test_layers(self):
        self.assertTrue(score.layers_right(line()))
        self.assertFalse(score.layers_right(line(layers="2/3")))
        self.assertFalse(score.layers_right(line(layers_strange=["odd"])))
        self.assertTrue(score.is_class("ParametrizationList.0") and score.is_class("Discriminator.net.0"))
        self.assertFalse(score.is_class("0") or score.is_class("blocks.0"))


class Places(unittest.TestCase):
    def test_of_a_mutant(self):
        mutant = mutants.Mutant(0, "accumulate", "hf.py", "llama", "a.b")
        for said, phase, right in (("a.b", "forward", True), ("a.b.c", "forward", True), ("a", "forward", True),
                                   ("net.a.b", "forward", True), ("neta.b", "forward", False),
                                   ("a.b", "backward", False), ("a.bc", "forward", False), ("", "forward", False)):
            self.assertEqual(bool(mutants.at_place(mutant, finding(layer=said, phase=phase))), right, (said, phase))

    def test_only_what_the_good_twin_does_not_say(self):
        mutant = mutants.Mutant(2, "cast", "hf.py", "llama", "a.b")
        usual, own = finding(layer="a"), finding(layer="a.b", phase="forward")
        found = mutants.judged(mutant, {"findings": [usual, finding("MPT013", layer="z"), own]}, {"findings": [usual]})
        self.assertEqual((found["found"], found["place"]), (True, 2))
        self.assertFalse(mutants.judged(mutant, {"findings": [usual]}, {"findings": [usual]})["found"])

    def test_mutants_come_from_programs_without_a_false_error(self):
        marks = [{"rule": "MPT010", "true": False, "why": "a kernel"}]
        lines = [line(name="a", group="timm"), line(name="b", group="timm"), line(name="b", group="timm",
                 findings=[finding()]), line(name="c", group="peft"), line(name="d", group="timm", ran=False)]
        self.assertEqual(mutants.healthy(lines, marks), {"a"})

    def test_good_twins_that_are_the_same_program(self):
        state, cast = (mutants.Mutant(1, kind, "vision.py", "a", "x") for kind in ("state", "cast"))
        self.assertEqual(mutants.code(state, "good"), mutants.code(mutants.Mutant(2, "constant", "vision.py", "a", "y"),
                                                                   "good"))
        self.assertEqual(mutants.code(state, "good", "fp32"), mutants.code(cast, "good", "fp32"))
        self.assertNotEqual(mutants.code(state, "good"), mutants.code(cast, "good"))
        self.assertNotEqual(mutants.code(state, "bad"), mutants.code(state, "good"))

    def test_a_draw_depends_on_seed_and_number_alone(self):
        named = [("timm", "vision.py", "a"), ("timm", "vision.py", "b")]
        layers = {"a": {"cast": ["x", "y"]}, "b": {}}
        first = mutants.drawn(2, 7, named, layers)
        self.assertEqual((first.kind, first.name), ("cast", "a"))
        self.assertEqual(first, mutants.drawn(2, 7, named, layers))
        self.assertIsNone(mutants.drawn(3, 7, named, layers))
        self.assertEqual(mutants.drawn(2, 7, named, layers, whole=True).layer, "*")

    def test_a_list_is_drawn_from_the_programs_and_kinds_that_are_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (os.path.join(folder, name) for name in ("first.txt", "second.txt"))
            with open(first, "w", encoding="utf-8") as f:
                f.write("# a comment\n" + "".join(f"{i}\tcast\tp.py\tname{i % 4}\tx\n" for i in range(8)))
            options = types.SimpleNamespace(draw=first, list=second, seed=5, count=6, programs=2, jobs=1,
                                            kinds="cast,state", whole=False)
            self.assertEqual(len(mutants.programs_of(options)), 4)
            with mock.patch.object(mutants, "layers_of", lambda *_: {"cast": ["x", "y"], "state": ["z"]}):
                mutants.draw_all(options)
            drawn = mutants.frozen(second)
        self.assertEqual([m.kind for m in drawn], ["cast", "state"] * 3)
        self.assertLessEqual(len({m.name for m in drawn}), 2)
        self.assertEqual({m.layer for m in drawn if m.kind == "state"}, {"z"})

    def test_kept_files_are_in_a_folder_of_the_first_of_several(self):
        mutant = mutants.Mutant(3, "cast", "vision.py", "a", "x")
        self.assertEqual(zoo.key_of([mutant, mutant]), mutant.key)
        self.assertEqual(zoo.key_of([{"key": "3 cast a"}]), "3 cast a")

    def test_the_table_names_the_list_that_is_not_the_first(self):
        self.assertNotIn("--list", tables.mutants_text([]))
        self.assertEqual(tables.mutants_text([], "tests/zoo/other.txt").count("--list tests/zoo/other.txt "), 2)

    def test_the_table_counts_traced_mutants(self):
        traced = {"ran": True, "traced": True, "kind": "cast", "effect": 4, "found": True, "place": 1, "gate": 1,
                  "good": "cast a x", "good_ops": 100_000, "good_errors": [finding()]}
        text = tables.mutants_text([traced, traced, {"ran": True, "traced": False, "kind": "cast", "effect": 0.1}])
        self.assertIn("| effect on the update of 3 to 10 floors | 2 | 2 | 2/2 | 2/2 | 2/2 | 2/2 |", text)
        self.assertIn("| effect on the update of 0 to 1 floors | 1 | 0 | 0/0 |", text)
        self.assertIn("1 errors in 100,000 op-steps, 1.00 in 100,000", text, "one good twin of two mutants")

    def test_of_a_public_bug(self):
        first = {"op": "aten::log", "lines": ["main.py:7", "main.py:12"]}
        other, right = finding() | {"source": "main.py:12"}, finding(op="aten::log") | {"source": "/x/main.py:12"}
        self.assertEqual(public.named(first, [other, right]), 2)
        self.assertEqual(public.named(first, [finding(op="aten::log") | {"source": "main.py:13"}]), 0)
        self.assertIsNone(public.named(None, [right]))


class Defects(unittest.TestCase):
    def test_each_is_of_a_script_of_its_list_and_of_a_kind_with_a_place(self):
        listed = [program for name in defects.LISTS for program in defects.programs(name)]
        self.assertEqual(len({p["key"] for p in listed}), len(listed))
        for program in listed:
            self.assertIn(program["kind"], mutants.PLACES)
            self.assertEqual(program["key"], f"{program['key'].split()[0]} {program['kind']} {program['layer']}")
            self.assertTrue(program["command"] and program["commit"])

    def test_a_run_that_fails_leaves_no_folder(self):
        options, folders = types.SimpleNamespace(keep=None), []

        def fails(options, *_, **__):
            folders.append(options.work)
            self.assertTrue(os.path.isdir(options.work))
            return 1, "ModuleNotFoundError", None
        with mock.patch.object(defects.strangers, "run", fails):
            told = defects.measure(options, next(defects.programs()))
        self.assertEqual((told["ran"], told["why"]), (False, "bad: 1: ModuleNotFoundError"))
        self.assertFalse(os.path.exists(folders[0]))


if __name__ == "__main__":
    unittest.main()
