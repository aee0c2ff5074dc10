"""`mp-trace doctor --sources` with the mp-lint that is beside it: a program with four defects and its fixed twin.

Arguments: mp-trace, the folder of the sources.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

tool, sources = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class Sources(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.top)
        self.folder = shutil.copytree(sources, os.path.join(self.top, "sources"))

    def doctor(self, *words):
        done = subprocess.run([tool, "doctor", "--json", *words], capture_output=True, text=True, cwd=self.top,
                              env=dict(os.environ, XDG_CACHE_HOME=self.top), timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return next(s["lines"] for s in json.loads(done.stdout)["sections"] if s["name"] == "sources")

    def rules(self, lines):
        return sorted(line["key"].split()[0] for line in lines if line["key"].startswith("MP"))

    def test_four_defects_and_their_places(self):
        lines = self.doctor("--sources", "sources", "--", "-DMULTI_GPU")
        self.assertEqual(self.rules(lines), ["MP201", "MP214", "MP409", "MP412"], lines)
        count = next(line for line in lines if line["key"].startswith("MP412"))
        self.assertTrue(count["value"].startswith("sources/zero.cuh:14:"), count)
        self.assertTrue(count["hint"], count)

    def test_the_fixed_twin_is_silent(self):
        lines = self.doctor("--sources", "sources", "--", "-DMULTI_GPU", "-DFIXED")
        self.assertEqual(self.rules(lines), [])
        self.assertTrue(any(line["key"] == "findings" and line["verdict"] == "ok" for line in lines), lines)
        self.assertFalse(any(line["verdict"] == "warn" for line in lines), lines)

    def test_without_flags_it_says_so(self):
        lines = self.doctor("--sources", "sources")
        self.assertEqual(self.rules(lines), ["MP201", "MP214"])
        self.assertIn("without the flags of its build", lines[0]["value"])

    def test_flags_of_a_compile_database(self):
        with open(os.path.join(self.folder, "compile_commands.json"), "w", encoding="utf-8") as out:
            json.dump([{"directory": self.folder, "file": "train.cu",
                        "arguments": ["nvcc", "-DMULTI_GPU", "-c", "train.cu", "-o", "train.o"]}], out)
        lines = self.doctor("--sources", "sources")
        self.assertEqual(self.rules(lines), ["MP201", "MP214", "MP409", "MP412"], lines)
        self.assertIn("compile_commands.json", lines[0]["value"])


sys.argv[1:] = []
unittest.main()
