"""The hooks of .pre-commit-hooks.yaml under the real pre-commit, in a small repository.

    MP_LINT=build/bin/mp-lint pre_commit_test.py
"""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PRE_COMMIT = os.path.join(ROOT, ".venv/bin/pre-commit")
MANIFEST = ".pre-commit-hooks.yaml"

BAD_PYTHON = """\
import torch


def step(model, batch, optimizer, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(batch).sum()
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


def train(model, batches, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for batch in batches:
        step(model, batch, optimizer, scaler)
"""
GOOD_PYTHON = BAD_PYTHON.replace("    torch.nn.utils", "    scaler.unscale_(optimizer)\n    torch.nn.utils")
BAD_CUDA = """\
#include <cuda_fp16.h>
__half sum(const __half* x, int n) {
    __half total = __float2half(0.0f);
    for (int i = 0; i < n; ++i) total = __hadd(total, x[i]);
    return total;
}
"""
GOOD_CUDA = "float twice(float x) { return x + x; }\n"


@unittest.skipUnless(os.path.exists(PRE_COMMIT), "no pre-commit in .venv: run script/bootstrap")
class PreCommit(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mp-pre-commit-")
        self.addCleanup(shutil.rmtree, self.folder)
        binaries = os.path.join(self.folder, "bin")
        os.mkdir(binaries)
        os.symlink(os.path.abspath(os.environ["MP_LINT"]), os.path.join(binaries, "mp-lint"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment = dict(kept, PATH=binaries + os.pathsep + os.environ["PATH"], HOME=self.folder,
                                PRE_COMMIT_HOME=os.path.join(self.folder, "home"),
                                XDG_CACHE_HOME=os.path.join(self.folder, "cache"), PRE_COMMIT_COLOR="never")
        self.hooks = os.path.join(self.folder, "hooks")
        os.mkdir(self.hooks)
        shutil.copy(os.path.join(ROOT, MANIFEST), self.hooks)
        self.commit(self.hooks)
        self.user = os.path.join(self.folder, "user")
        os.mkdir(self.user)

    def run_in(self, where, *words):
        return subprocess.run(words, cwd=where, env=self.environment, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def git(self, where, *words):
        done = self.run_in(where, "git", "-c", "user.name=t", "-c", "user.email=t@t", *words)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.strip()

    def commit(self, where):
        self.git(where, "init", "-q", ".")
        self.git(where, "add", ".")
        self.git(where, "commit", "-q", "-m", "x")

    def hook(self, files):
        """Outcome of `pre-commit run --all-files` over these files."""
        for name, text in files.items():
            with open(os.path.join(self.user, name), "w", encoding="utf-8") as f:
                f.write(text)
        revision = self.git(self.hooks, "rev-parse", "HEAD")
        with open(os.path.join(self.user, ".pre-commit-config.yaml"), "w", encoding="utf-8") as f:
            f.write(f"repos:\n- repo: {self.hooks}\n  rev: {revision}\n  hooks:\n  - id: mp-lint\n"
                    "  - id: mp-lint-cxx\n    args: [--cuda, stubs]\n")
        self.commit(self.user)
        return self.run_in(self.user, PRE_COMMIT, "run", "--all-files")

    def test_the_manifest_is_valid(self):
        done = self.run_in(ROOT, PRE_COMMIT, "validate-manifest", MANIFEST)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_clean_files_pass(self):
        done = self.hook({"train.py": GOOD_PYTHON, "twice.cpp": GOOD_CUDA})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("Passed"), 2, done.stdout)

    def test_findings_fail_with_their_place(self):
        done = self.hook({"train.py": BAD_PYTHON, "sum.cu": BAD_CUDA})
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("train.py:8:", done.stdout)
        self.assertIn("sum.cu:4:", done.stdout)
        self.assertEqual(done.stdout.count("exit code: 1"), 2, done.stdout)

    def test_notes_are_not_printed(self):
        text = "import torch\nx = torch.zeros(3)  # mp-lint: disable=MP301 why\n"
        done = self.hook({"a.py": text, "twice.cpp": GOOD_CUDA})
        self.assertNotIn("MP001", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_files_of_other_kinds_are_not_looked_at(self):
        done = self.hook({"notes.txt": BAD_PYTHON, "a.md": "# a\n"})
        self.assertEqual(done.stdout.count("(no files to check)Skipped"), 2, done.stdout)


if __name__ == "__main__":
    unittest.main()
