"""`mp-trace gate` on synthetic recordings: findings, verdicts, exit codes and files.

MP_TRACE and MP_LINT name the binaries, MP_SYNTHETIC_RUN the program that writes recordings of runs that never happened.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

TRACE = os.environ["MP_TRACE"]
LINT = os.environ["MP_LINT"]
SYNTHETIC = os.environ["MP_SYNTHETIC_RUN"]


class Gate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cwd = self.folder.name
        self.addCleanup(self.folder.cleanup)

    def record(self, *options):
        name = os.path.join(self.cwd, "run")
        subprocess.run(["rm", "-rf", name], check=True)
        os.mkdir(name)
        subprocess.run([SYNTHETIC, name, *options], check=True, stdout=subprocess.DEVNULL)
        return name

    def gate(self, *words):
        return subprocess.run([TRACE, "gate", *words], cwd=self.cwd, capture_output=True, text=True, timeout=60)

    def judged(self, *options, gate=()):
        """Exit code and findings of a recording, in the order of the rules."""
        done = self.gate(self.record(*options), "--output", "json", *gate)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        root = json.loads(done.stdout)
        self.assertEqual(root["exit_code"], done.returncode)
        return done.returncode, [f for rule in root["rules"] for f in rule["findings"]], root

    def write(self, name, text):
        path = os.path.join(self.cwd, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def test_clean_runs_pass(self):
        for options in ([], ["--loss-scale", "--dtype", "fp16"], ["--watch"], ["--sample-every", "0"],
                        ["--dtype", "fp16", "--skipped", "0", "--skipped", "1", "--skipped", "2"]):
            for seed in range(1, 6):
                code, findings, _ = self.judged(*options, "--seed", str(seed), "--steps", "12")
                self.assertEqual((code, findings), (0, []), (options, seed))

    def test_a_forward_overflow(self):
        for seed in range(1, 6):
            code, findings, _ = self.judged("--dtype", "fp16", "--overflow", "2,aten::addmm,5,1", "--seed", str(seed))
            self.assertEqual(code, 1)
            first = findings[0]
            self.assertEqual((first["rule"], first["layer"], first["op"], first["phase"], first["step"], first["rank"]),
                             ("MPT001", "blocks.2.fc", "aten::addmm", "forward", 5, 1))
            self.assertEqual({f["rule"] for f in findings}, {"MPT001", "MPT004"})
            self.assertTrue(all(f["layer"] == "blocks.2.fc" for f in findings), findings)

    def test_stagnating_weights(self):
        code, findings, _ = self.judged("--stagnating", "1")
        self.assertEqual(code, 1)
        self.assertEqual([(f["rule"], f["layer"], f["phase"], f["step"]) for f in findings],
                         [("MPT040", "blocks.1.fc", "optimizer", 0)])

    def test_a_running_sum(self):
        code, findings, _ = self.judged("--absorbing-sum")
        self.assertEqual(code, 1)
        self.assertEqual([(f["rule"], f["layer"], f["op"], f["phase"]) for f in findings],
                         [("MPT012", "(loss)", "aten::add_", "forward")])

    def test_other_defects(self):
        for options, gate, rule in ((["--low-reduction"], [], "MPT050"), (["--off-policy", "1"], [], "MPT060"),
                                    (["--disagree", "4,1"], [], "MPT004"),
                                    (["--low-reduction"], ["--policy", "fsdp:param=bf16,reduce=fp32"], "MPT060")):
            code, findings, _ = self.judged(*options, gate=gate)
            self.assertEqual(code, 1, options)
            self.assertIn(rule, [f["rule"] for f in findings], options)

    def test_too_little_was_observed(self):
        code, _, root = self.judged("--ranks", "3", "--missing", "2")
        self.assertEqual(code, 3)
        self.assertIn("1 rank left no recording: 2", root["inconclusive"])
        self.assertEqual(self.judged("--truncated", "1")[0], 3)
        self.assertEqual(self.gate(self.record("--ranks", "3", "--missing", "2")).returncode, 3)

    def test_usage_errors(self):
        run = self.record()
        for words in ([], [run, run], [run, "--rules", "none.toml"], [run, "--lint", "none.json"],
                      [run, "--policy", "fsdp:parm=bf16"], [run, "--output", "jnuit"], [run, "--output", "json="],
                      [run, "--output", "json", "--output", "text"], ["nowhere"], [run, "--unheard"],
                      [run, "--output", "json=no/such/folder.json"]):
            done = self.gate(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertEqual(done.stdout, "", words)
            self.assertIn("mp-trace: error:", done.stderr, words)
            self.assertNotIn("internal", done.stderr, words)

    def test_the_rule_file(self):
        run = self.record("--stagnating", "1")
        self.assertEqual(self.gate(run).returncode, 1)
        suppress = '[[suppress]]\nrule = "MPT040"\nlayer = "blocks.1.*"\nreason = "known"\n'
        rules = self.write("rules.toml", suppress)
        self.assertEqual(self.gate(run, "--rules", rules).returncode, 0)
        self.write("mp-gate.toml", suppress + "expires = 2020-01-01\n")
        done = self.gate(run)
        self.assertEqual(done.returncode, 1, "expired, and found without being named")
        self.assertIn("suppression expired: mp-gate.toml:1: MPT040", done.stdout)
        self.write("mp-gate.toml", "[limits]\nstagnation-fial = 1\n")
        done = self.gate(run)
        self.assertEqual(done.returncode, 2)
        self.assertIn("mp-gate.toml:2: unknown key", done.stderr)
        self.assertIn("did you mean 'stagnation-fail'?", done.stderr)

    def test_strict_and_warnings(self):
        run = self.record("--stagnating", "1")
        rules = self.write("rules.toml", "[limits]\nstagnation-fail = 0.99\n")
        self.assertEqual(self.gate(run, "--rules", rules).returncode, 0)
        self.assertEqual(self.gate(run, "--rules", rules, "--strict").returncode, 1)

    def test_the_hint_names_options_of_mp_lint_whose_files_are_read(self):
        done = self.gate(self.record(), "--lint", self.write("lint.json", "{}"))
        self.assertEqual(done.returncode, 2)
        words = re.findall(r"(--\w+) (\w+)", done.stderr[done.stderr.index("hint: "):])
        self.assertEqual(len(words), 2, done.stderr)
        self.write("a.py", "import torch\nx = torch.ones(2).half().sum()\n")
        for option, format in words:
            lint = subprocess.run([LINT, "--isolated", "--no-cache", option, format + "=found", "a.py"], cwd=self.cwd,
                                  capture_output=True, text=True, timeout=60)
            self.assertIn(lint.returncode, (0, 1), lint.stderr)
            self.assertIn(self.gate(self.record(), "--lint", "found").returncode, (0, 1))

    def test_lint_and_run_confirm_each_other(self):
        lint = self.write("lint.json", json.dumps({"version": 1, "findings": [
            {"rule": "MP401", "name": "half-accumulator", "severity": "error", "file": "src/train.py", "line": 20,
             "message": "the sum is held in half"}]}))
        code, findings, root = self.judged("--absorbing-sum", gate=["--lint", lint])
        self.assertEqual(code, 1)
        self.assertEqual(findings[0]["confirmed_by"], ["MP401 src/train.py:20"])
        self.assertEqual(root["lint"][0]["confirmed_by"], ["MPT012 (loss) aten::add_"])
        self.assertEqual(self.gate(self.record(), "--lint", lint).returncode, 1, "lint alone fails too")

    def test_all_outputs_at_once(self):
        run = self.record("--absorbing-sum")
        names = {form: os.path.join(self.cwd, "gate." + form) for form in ("json", "junit", "sarif", "github")}
        done = self.gate(run, "--output", "text", *(w for f, n in names.items() for w in ("--output", f + "=" + n)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(done.stdout.startswith("FAIL  MPT012"), done.stdout)
        texts = {form: pathlib.Path(name).read_text(encoding="utf-8") for form, name in names.items()}
        self.assertEqual(json.loads(texts["json"])["verdict"], "fail")
        self.assertEqual(json.loads(texts["sarif"])["version"], "2.1.0")
        self.assertEqual(len(xml.etree.ElementTree.fromstring(texts["junit"]).findall("*/testcase/failure")), 1)
        self.assertIn("MPT012", texts["github"])

    def test_the_result_is_the_same_every_time(self):
        run = self.record("--ranks", "4", "--overflow", "1,aten::mm,3,2", "--dtype", "fp16")
        first = self.gate(run, "--output", "json").stdout
        for _ in range(3):
            self.assertEqual(self.gate(run, "--output", "json").stdout, first)


if __name__ == "__main__":
    unittest.main()
