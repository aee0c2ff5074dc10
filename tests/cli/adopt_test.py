"""Fixing and adopting, with the real binary: --fix, --diff, baselines, --diff-base, formats, suppressions.

    MP_LINT=build/bin/mp-lint adopt_test.py
"""
import json
import os
import py_compile
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

BAD = """\
#include <cuda_fp16.h>
__half sum(const __half* x) {
    __half total = __float2half(0.0f);
    for (int i = 0; i < 64; ++i) total = __hadd(total, x[i]);
    return total;
}
"""
MORE = BAD.replace("sum(", "sum2(")

# A rule with a safe mechanical fix: the deprecated spellings of torch.amp.
OLD_API = """\
# -*- coding: utf-8 -*-
import torch
import   os   # odd formatting stays


def train( model,batches , optimizer ):
    scaler = torch.cuda.amp.GradScaler()   # the scaler
    for batch in batches:
        with torch.cuda.amp.autocast() :   # é
            loss = model(batch).float().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer) ; scaler.update()
"""


class Adopt(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mp-adopt-")
        self.addCleanup(shutil.rmtree, self.folder)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment = dict(kept, XDG_CACHE_HOME=os.path.join(self.folder, "cache"), NO_COLOR="1")
        self.cwd = os.path.join(self.folder, "p")
        os.mkdir(self.cwd)

    def write(self, name, text):
        path = os.path.join(self.cwd, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(text)

    def read(self, name):
        with open(os.path.join(self.cwd, name), encoding="utf-8", newline="") as f:
            return f.read()

    def run_in(self, *words):
        return subprocess.run(words, cwd=self.cwd, env=self.environment, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def lint(self, *arguments, code=None):
        words = [os.path.abspath(os.environ["MP_LINT"]), "--cuda", "stubs", "--isolated", *arguments]
        done = self.run_in(*words)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def git(self, *words):
        done = self.run_in("git", "-c", "user.name=t", "-c", "user.email=t@t", *words)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_baseline_from_make_to_update(self):
        self.write("a.cu", BAD)
        done = self.lint("baseline", "make", "known.json", "a.cu", code=0)
        self.assertIn("known.json: 1 finding", done.stderr)
        self.lint("--baseline", "known.json", "a.cu", code=0)
        self.write("a.cu", "// above\n" + BAD + MORE)
        done = self.lint("--baseline", "known.json", "a.cu", code=1)
        self.assertIn("a.cu:11:", done.stdout)
        self.assertNotIn("a.cu:5:", done.stdout)
        self.assertIn("1 in the baseline", done.stdout)
        done = self.lint("baseline", "diff", "known.json", "a.cu", code=1)
        self.assertIn("1 introduced, 0 fixed, 1 preexisting", done.stdout)
        self.write("a.cu", "int x;\n")
        self.assertIn("no longer found", self.lint("--baseline", "known.json", "a.cu", code=0).stderr)
        self.lint("baseline", "update", "known.json", "a.cu", code=0)
        self.assertEqual(json.loads(self.read("known.json"))["entries"], [])

    def test_a_moved_file_keeps_its_baseline(self):
        self.write("a.cu", BAD)
        self.lint("baseline", "make", "known.json", "a.cu", code=0)
        os.makedirs(os.path.join(self.cwd, "sub"))
        os.rename(os.path.join(self.cwd, "a.cu"), os.path.join(self.cwd, "sub/b.cu"))
        self.lint("--baseline", "known.json", "sub/b.cu", "--", code=0)

    def test_wrong_use_is_exit_2_with_a_hint(self):
        self.write("a.cu", BAD)
        for words in (["--baseline", "none.json", "a.cu"], ["baseline", "mke", "b.json", "a.cu"],
                      ["baseline", "make"], ["--unsafe-fixes", "a.cu"], ["--diff-base", "HEAD", "a.cu"],
                      ["baseline", "diff", "a.cu", "a.cu"]):
            done = self.lint(*words, code=2)
            self.assertTrue(done.stderr.startswith("mp-lint: error: "), done.stderr)
            self.assertEqual(done.stdout, "")

    def test_only_what_changed_since_a_revision(self):
        self.write("a.cu", BAD)
        self.git("init", "-q", ".")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "x")
        done = self.lint("--diff-base", "HEAD", "a.cu", code=0)
        self.assertIn("1 outside the diff", done.stdout)
        self.write("a.cu", BAD + MORE)
        done = self.lint("--diff-base", "HEAD", "a.cu", code=1)
        self.assertIn("a.cu:10:", done.stdout)
        self.assertNotIn("a.cu:4:", done.stdout)
        self.assertIn("is not a commit of", self.lint("--diff-base", "gone", "a.cu", code=2).stderr)

    def test_every_format_in_one_run(self):
        self.write("a.cu", BAD)
        formats = ["json", "sarif", "github", "gitlab", "rdjson", "junit", "markdown"]
        self.lint(*(f"--output={f}={f}.out" for f in formats), "--output", "text", "a.cu", code=1)
        for name in ("json", "sarif", "gitlab", "rdjson"):
            json.loads(self.read(name + ".out"))
        self.assertIn("\n::error file=a.cu,line=4,", self.read("github.out"))
        root = xml.etree.ElementTree.fromstring(self.read("junit.out"))
        self.assertEqual(len(root.findall("*/testcase/failure")), 1)
        self.assertTrue(self.read("markdown.out").startswith("### mp-lint: 1 error\n"))

    def test_suppressions_are_judged(self):
        self.write("a.cu", BAD.replace("x[i]);", "x[i]);  // mp-lint: disable=MP401"))
        self.assertIn("[MP002 suppression-without-reason]", self.lint("--notes", "a.cu", code=0).stdout)
        self.write("a.cu", "int x;  // mp-lint: disable=MP401 why\n")
        for _ in range(2):  # cold and from the cache
            self.assertIn("[MP001 unused-suppression]", self.lint("--notes", "a.cu", code=0).stdout)
        self.write("a.py", "import torch\nx = torch.zeros(3)  # mp-lint: disable=MP301 why\n")
        for _ in range(2):
            self.assertIn("a.py:2:23: note: this suppression of MP301",
                          self.lint("--notes", "a.py", code=0).stdout)
        self.assertNotIn("MP001", self.lint("--notes", "--ignore", "MP001", "a.py", code=0).stdout)

    def test_notes_are_for_programs_and_for_those_who_ask(self):
        self.write("a.py", "import torch\nx = torch.zeros(3)  # mp-lint: disable=MP301 why\n")
        readable = ("text", "github", "gitlab", "rdjson", "junit", "markdown")
        for name in readable:
            self.assertNotIn("MP001", self.lint("--output", name, "a.py", code=0).stdout, name)
            self.assertIn("MP001", self.lint("--notes", "--output", name, "a.py", code=0).stdout, name)
        for name in ("json", "sarif"):
            said = self.lint("--output", name, "--output", "text=a.txt", "a.py", code=0).stdout
            self.assertTrue('"ruleId":"MP001"' in said or '"rule": "MP001"' in said, name)
            self.assertIn("no findings · 1 note; --notes shows it", self.read("a.txt"))
        self.assertEqual(self.lint("--quiet", "a.py", code=0).stdout, "")

    def test_a_diff_changes_nothing_and_applies(self):
        self.write("old.py", OLD_API)
        diff = self.lint("--select", "MP120", "--diff", "old.py")
        self.assertEqual(self.read("old.py"), OLD_API)
        self.assertTrue(diff.stdout.startswith("--- a/old.py\n+++ b/old.py\n"), diff.stdout + diff.stderr)
        self.git("init", "-q", ".")
        with open(os.path.join(self.cwd, "d.patch"), "w", encoding="utf-8") as f:
            f.write(diff.stdout)
        self.git("apply", "d.patch")
        applied = self.read("old.py")
        self.write("old.py", OLD_API)
        self.lint("--select", "MP120", "--fix", "old.py")
        self.assertEqual(self.read("old.py"), applied)

    def test_fixed_files_parse_and_are_clean(self):
        for name, text in (("old.py", OLD_API), ("dos.py", OLD_API.replace("\n", "\r\n"))):
            self.write(name, text)
            os.chmod(os.path.join(self.cwd, name), 0o750)
            found = json.loads(self.lint("--select", "MP120", "--output", "json", name).stdout)["findings"]
            self.assertTrue(found and all(f.get("edits") for f in found), found)
            done = self.lint("--select", "MP120", "--fix", name, code=0)
            self.assertIn(f"mp-lint: fix: {len(found)} fixed", done.stderr)
            py_compile.compile(os.path.join(self.cwd, name), cfile=os.path.join(self.folder, "x.pyc"),
                               doraise=True)
            after = self.read(name)
            self.assertEqual(after.count("\r\n"), text.count("\r\n"))
            for kept in ("   # the scaler", "def train( model,batches , optimizer ):", "import   os   # odd",
                         ") :   # é", "scaler.step(optimizer) ; scaler.update()"):
                self.assertIn(kept, after)
            self.assertEqual(os.stat(os.path.join(self.cwd, name)).st_mode & 0o777, 0o750)
            self.lint("--select", "MP120", name, code=0)


if __name__ == "__main__":
    unittest.main()
