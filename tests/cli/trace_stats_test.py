"""`--stats` of mp-lint, and of mp-trace's report and gate: the same stages in the same order, and counts that are true.

MP_LINT, MP_TRACE and MP_SYNTHETIC_RUN name the programs.
"""
import os
import re
import subprocess
import tempfile
import unittest

LINT, TRACE, SYNTHETIC = (os.environ[name] for name in ("MP_LINT", "MP_TRACE", "MP_SYNTHETIC_RUN"))
LINE = re.compile(r"^(mp-lint|mp-trace): stats: ([a-z ]+) (\d+\.\d{3} s|\d+)$")


class Stats(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def stats(self, *command):
        """Name -> value of the lines of --stats, in their order."""
        done = subprocess.run([*command, "--stats"], cwd=self.folder.name, capture_output=True, text=True, timeout=60)
        rows = [LINE.match(line) for line in done.stderr.splitlines() if ": stats: " in line]
        self.assertTrue(rows and all(rows), done.stderr)
        return {row[2]: row[3] for row in rows}

    def test_lint_tells_its_stages_and_cache_hits(self):
        source = os.path.join(self.folder.name, "train.cpp")
        with open(source, "w", encoding="utf-8") as out:
            out.write("int main() { return 0; }\n")
        command = [LINT, "--isolated", "--cache-dir", os.path.join(self.folder.name, "cache"), source]
        cold = self.stats(*command)
        self.assertEqual(list(cold), ["discover", "cache", "extract", "link", "rules", "report",
                                      "files", "units", "cache hits", "cache misses"])
        self.assertEqual((cold["units"], cold["cache hits"], cold["cache misses"]), ("1", "0", "1"))
        warm = self.stats(*command)
        self.assertEqual((warm["units"], warm["cache hits"], warm["cache misses"]), ("1", "1", "0"))

    def test_report_and_gate_tell_what_they_read(self):
        run = os.path.join(self.folder.name, "run")
        os.mkdir(run)
        subprocess.run([SYNTHETIC, run], check=True, stdout=subprocess.DEVNULL)
        size = sum(entry.stat().st_size for entry in os.scandir(run) if entry.name.endswith(".mpt"))
        for verb in ("report", "gate"):
            with self.subTest(verb):
                found = self.stats(TRACE, verb, run)
                self.assertEqual(list(found), ["fold", "symbols", "judge", "render",
                                               "files", "bytes", "steps", "op rows", "tensor rows"])
                self.assertEqual(int(found["bytes"]), size)
                self.assertGreater(int(found["steps"]), 0)

    def test_without_the_option_there_is_none(self):
        done = subprocess.run([LINT, "--isolated", "--no-cache", self.folder.name], capture_output=True, text=True,
                              timeout=60)
        self.assertNotIn("stats:", done.stderr)


if __name__ == "__main__":
    unittest.main()
