"""How many ops carry the right layer: mp-trace's list against that of truth.py, from a second run.

`attribution_test.py MP_TRACE TORCHRUN PROGRAM_FOLDER [unittest options]`. Skipped where there is no torchrun.
Both lists are in the order of execution and are matched by it, op name by op name. The denominator is every leaf
op of mp-trace's list in forward (backward) that computes something, on all ranks, without views. An op of the
list that is missing in the second run counts as wrong. In backward, ops that run in no node (FSDP's last
reduction, after the graph) have no truth; they are counted separately.
"""
import collections
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

MP_TRACE, TORCHRUN, PROGRAMS = sys.argv[1:4]
# Only a test adapter writes the list of ops (instrument/torch/test_hooks.hpp).
TEST_ADAPTERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(MP_TRACE))), "test-adapters")
HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 2
# Ops that the dispatcher shows below the ops that a mode sees: FSDP2's own ops, and that of a cast.
INNER = {"aten::_to_copy": "aten::copy_",
         "fsdp::chunk_cat": "aten::_chunk_cat", "fsdp::split_with_sizes_copy": "aten::split_with_sizes_copy",
         "fsdp::all_gather_copy_in": "aten::_foreach_copy_"}
GOAL = {"forward": 0.99, "backward": 0.95}
Op = collections.namedtuple("Op", "phase name layer guessed")


def read_truth(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Op(phase, INNER.get(name, name), "" if layer == "-" else layer, False) for phase, name, layer in rows]


def read_traced(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Op(phase, name, layer, guessed == "1") for _, phase, name, layer, guessed in rows]


class Share:
    def __init__(self):
        self.right = self.wrong = self.unmatched = self.guessed = self.untold = 0
        self.examples = collections.Counter()

    def value(self):
        return self.right / max(1, self.right + self.wrong + self.unmatched)

    def text(self):
        return (f"{100 * self.value():.2f} % of {self.right + self.wrong + self.unmatched} ops right "
                f"({self.guessed} of them guessed), {self.wrong} wrong, {self.unmatched} not in the second run, "
                f"{self.untold} without truth")


def is_right(traced, truth):
    # Outside of all modules: anything but a module's name.
    return traced.layer == truth.layer if truth.layer else traced.layer == "" or traced.layer.startswith("(")


def compare(traced, truth):
    """{phase: Share}."""
    matcher = difflib.SequenceMatcher(None, [op.name for op in traced], [op.name for op in truth], autojunk=False)
    partner = {block.a + i: truth[block.b + i] for block in matcher.get_matching_blocks() for i in range(block.size)}
    shares = {phase: Share() for phase in GOAL}
    for position, op in enumerate(traced):
        share, other = shares.get(op.phase), partner.get(position)
        if share is None:
            continue
        if other is None:
            share.unmatched += 1
            share.examples[op.name, op.layer, "unmatched"] += 1
        elif op.phase == "backward" and not other.layer:
            share.untold += 1
        elif is_right(op, other):
            share.right += 1
            share.guessed += op.guessed
        else:
            share.wrong += 1
            share.examples[op.name, op.layer, other.layer] += 1
    return shares


class Attribution(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attribution-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_it(self, what, before, options):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MP_TRACE", "PYTHON"))}
        environment.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
        command = [*before, TORCHRUN, "--standalone", "--nproc-per-node", str(RANKS), os.path.join(HERE, "truth.py"),
                   self.folder, what, os.path.join(PROGRAMS, "fsdp_gpt.py"), "--steps", "3", *options]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def check(self, *options):
        run = os.path.join(self.folder, "run")
        traced = self.run_it("traced", [MP_TRACE, "--mode", "trajectory", "--adapters", TEST_ADAPTERS, "-o", run, "--"], options)
        self.assertEqual(traced, self.run_it("truth", [], options))  # the same training
        totals = {phase: Share() for phase in GOAL}
        for rank in range(RANKS):
            shares = compare(read_traced(os.path.join(self.folder, f"traced.{rank}")),
                             read_truth(os.path.join(self.folder, f"truth.{rank}")))
            for phase, share in shares.items():
                for name in ("right", "wrong", "unmatched", "guessed", "untold"):
                    setattr(totals[phase], name, getattr(totals[phase], name) + getattr(share, name))
                totals[phase].examples.update(share.examples)
        for phase, share in totals.items():
            print(f"fsdp_gpt.py {' '.join(options)} {phase}: {share.text()}")
        for phase, share in totals.items():
            self.assertGreater(share.right, 100, phase)
            self.assertGreaterEqual(share.value(), GOAL[phase], f"{phase}: {share.examples.most_common(12)}")

    def test_fsdp2(self):
        self.check()

    def test_fsdp1(self):
        self.check("--fsdp1", "--use-orig-params")


class Comparison(unittest.TestCase):
    """The comparison itself finds errors."""

    TRUTH = [Op("forward", "aten::mm", "fc1", False), Op("forward", "aten::view", "fc1", False),
             Op("forward", "aten::gelu", "fc2", False), Op("forward", "aten::sum", "", False),
             Op("backward", "aten::mm", "fc2", False), Op("backward", "aten::add_", "", False)]

    def test_the_truth_itself_is_right(self):
        shares = compare([op for op in self.TRUTH if op.name != "aten::view"], self.TRUTH)
        self.assertEqual([(s.right, s.wrong, s.unmatched, s.untold) for s in shares.values()],
                         [(3, 0, 0, 0), (1, 0, 0, 1)])

    def test_wrong_missing_and_invented_layers_are_found(self):
        for position, layer in ((0, "fc2"), (0, ""), (3, "fc1"), (4, "(loss)")):
            traced = list(self.TRUTH)
            traced[position] = traced[position]._replace(layer=layer)
            self.assertEqual(sum(share.wrong for share in compare(traced, self.TRUTH).values()), 1, position)

    def test_an_op_that_the_second_run_does_not_show_counts(self):
        traced = self.TRUTH[:1] + [Op("forward", "aten::exp", "fc1", False)] + self.TRUTH[1:]
        self.assertLess(compare(traced, self.TRUTH)["forward"].value(), 1)


if __name__ == "__main__":
    if not os.path.exists(TORCHRUN):
        print(f"skipped: no {TORCHRUN}")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
