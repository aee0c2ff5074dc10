"""mp-trace report and mp-trace summary on recordings of runs that never happened, as a user runs them.

MP_TRACE names the binary, MP_SYNTHETIC_RUN the program that writes the runs.
"""
import json
import os
import re
import subprocess
import sys
import unittest

from trace_support import TraceTest

SYNTHETIC = os.path.realpath(os.environ["MP_SYNTHETIC_RUN"])
OVERFLOW = ["--dtype", "fp16", "--loss-scale", "--steps", "12", "--overflow", "2,aten::addmm,5,1"]


class Report(TraceTest):
    def run_of(self, *plan, name="run"):
        os.makedirs(self.path(name), exist_ok=True)
        subprocess.run([SYNTHETIC, self.path(name), *plan], check=True, stdout=subprocess.DEVNULL)
        return name

    def report(self, *words):
        done = self.run_tool("report", *words)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def data_of(self, page):
        with open(self.path(page), encoding="utf-8") as f:
            return json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.S)[1])

    def test_page_text_and_json_agree_on_the_first_cause(self):
        run = self.run_of(*OVERFLOW)
        self.assertEqual(self.report(run, "--html", "a.html", "--json", "a.json"), "")
        page, text = self.data_of("a.html"), self.report(run)
        with open(self.path("a.json"), encoding="utf-8") as f:
            report = json.load(f)
        self.assertEqual(report["verdict"]["result"], "fail")
        first = report["findings"][0]
        self.assertEqual((first["layer"], first["phase"], first["step"]), ("blocks.2.fc", "forward", 5))
        self.assertEqual(page["findings"][0], first)
        self.assertTrue(text.startswith("FAIL  " + first["message"]), text[:300])
        self.assertIn("change: " + first["advice"][:40], text)
        self.assertEqual(report["first_overflow"]["layer"], "blocks.2.fc")
        self.assertEqual(report["steps"][0]["step"], 0)

    def test_a_clean_run_passes(self):
        text = self.report(self.run_of("--steps", "12"))
        self.assertTrue(text.startswith("PASS  "), text[:400])

    def test_json_goes_to_standard_output_alone(self):
        run = self.run_of()
        self.assertEqual(json.loads(self.report(run, "--json", "-"))["version"], 1)
        for words in (["--json", "-", "--text"], ["--json", "-", "--html", "-"]):
            self.assert_refused(self.run_tool("report", run, *words), 2, "two reports go to standard output")

    def test_the_page_names_no_other_file(self):
        run = self.run_of()
        self.report(run, "--html", "a.html")
        with open(self.path("a.html"), encoding="utf-8") as f:
            page = f.read()
        markup = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
        self.assertNotRegex(markup, r'(src|href)="(?!#)')
        self.assertNotIn("url(", "".join(re.findall(r"<style>(.*?)</style>", page, re.S)))
        self.assertIn("default-src 'none'", page)

    def test_a_policy_is_checked_and_a_bad_one_is_a_usage_error(self):
        run = self.run_of("--off-policy", "1")
        report = json.loads(self.report(run, "--json", "-", "--policy", "fsdp:param=bf16,reduce=fp32"))
        self.assertTrue(report["checks"])
        self.assert_refused(self.run_tool("report", run, "--policy", "fsdp:parm=bf16"), 2, "--policy")
        self.assert_refused(self.run_tool("report", run, "--lint", "absent.sarif"), 2, "--lint")

    def test_nothing_to_report_on(self):
        os.mkdir(self.path("empty"))
        for name in ("empty", "absent"):
            for verb in ("report", "summary"):
                self.assert_refused(self.run_tool(verb, name), 1, name)
        self.assert_refused(self.run_tool("report"), 2, "of which run?")
        self.assert_refused(self.run_tool("summary"), 2, "of which run?")
        self.assert_refused(self.run_tool("report", self.run_of(), "--html", ""), 2, "--html")

    def test_a_page_that_cannot_be_written_is_an_error_and_leaves_nothing(self):
        run = self.run_of()
        done = self.run_tool("report", run, "--html", "no/such/place.html")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No such file or directory", done.stderr)

    def test_a_damaged_run_is_reported_as_far_as_it_goes(self):
        run = self.run_of("--ranks", "3", "--missing", "1", "--truncated", "2")
        self.report(run, "--html", "a.html")
        trust = self.data_of("a.html")["trust"]
        self.assertEqual(trust["missing"], [1])
        self.assertTrue(any(not r["ended"] or r["problems"] for r in trust["ranks"]))

    def test_the_summary_is_short_and_ours(self):
        done = self.run_tool("summary", self.run_of(*OVERFLOW, "--ranks", "3", "--missing", "2"))
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        lines = done.stderr.decode().splitlines()
        self.assertLessEqual(len(lines), 8)
        for line in lines:
            self.assertTrue(line.startswith("mp-trace: "), line)
        self.assertIn("1 rank left no recording: 2", done.stderr.decode())
        self.assertIn("first overflow   blocks.2.fc", done.stderr.decode())
        self.assertEqual(lines[-1], "mp-trace: next: mp-trace report run --html report.html")


if __name__ == "__main__":
    sys.exit(unittest.main())
