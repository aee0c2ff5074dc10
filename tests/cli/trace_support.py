"""Shared by the tests of the mp-trace command line: a PREFIX for each test, and runs of mp-trace in it."""
import os
import shutil
import subprocess
import tempfile
import unittest

MP_TRACE = os.path.realpath(os.environ["MP_TRACE"])
PYTHON = "/usr/bin/python3"
OURS = b"mp-trace: "


class TraceTest(unittest.TestCase):
    """Each test works in an empty directory, with an installation that it may break, and without a launcher."""

    def setUp(self):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="mp-trace-test-"))
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.cwd = os.path.join(self.top, "cwd")
        os.mkdir(self.cwd)
        self.prefix = self.install("prefix")
        self.tool = os.path.join(self.prefix, "bin", "mp-trace")
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("OMPI_", "PMI", "PMIX", "SLURM_", "TORCHELASTIC_", "MP_TRACE"))
                    and k not in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LD_PRELOAD", "PYTHONPATH")}
        self.env["XDG_CACHE_HOME"] = os.path.join(self.top, "cache")

    def install(self, name):
        """A PREFIX with the real mp-trace and its preload, and an empty shim."""
        prefix = os.path.join(self.top, name)
        os.makedirs(os.path.join(prefix, "lib", "mp-trace", "python"))
        os.mkdir(os.path.join(prefix, "bin"))
        shutil.copy(MP_TRACE, os.path.join(prefix, "bin", "mp-trace"))
        built = os.path.join(os.path.dirname(os.path.dirname(MP_TRACE)), "lib", "mp-trace", "libmptrace_preload.so")
        shutil.copy(built, os.path.join(prefix, "lib", "mp-trace"))
        return prefix

    @property
    def preload(self):
        return os.path.join(self.prefix, "lib", "mp-trace", "libmptrace_preload.so")

    @property
    def shim(self):
        return os.path.join(self.prefix, "lib", "mp-trace", "python")

    def path(self, *names):
        return os.path.join(self.cwd, *names)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(path, mode)
        return path

    def run_tool(self, *words, env=None, cwd=None, **more):
        """Runs mp-trace with these words, with a limit of a minute."""
        return subprocess.run([self.tool, *words], env={**self.env, **(env or {})}, cwd=cwd or self.cwd,
                              stdin=more.pop("stdin", subprocess.DEVNULL), stdout=more.pop("stdout", subprocess.PIPE),
                              stderr=more.pop("stderr", subprocess.PIPE), timeout=60, **more)

    def trace(self, *command, options=(), **more):
        return self.run_tool(*options, "--no-build", "--", *command, **more)

    def compile(self, name, text, *flags):
        """A C program in the working directory; skips the test when there is no compiler."""
        source = self.write(name + ".c", text)
        compiler = shutil.which("cc") or shutil.which("clang-19")
        if not compiler:
            self.skipTest("no C compiler")
        done = subprocess.run([compiler, source, "-o", self.path(name), *flags], capture_output=True)
        if done.returncode:
            self.skipTest(f"does not compile here: {done.stderr.decode()[:200]}")
        return self.path(name)

    def directories(self):
        return sorted(name for name in os.listdir(self.cwd)
                      if os.path.isdir(self.path(name)) and not os.path.islink(self.path(name)))

    def options_in(self, directory):
        """The options files of a run directory, each as a dictionary."""
        found = []
        for name in sorted(os.listdir(self.path(directory))):
            if name.startswith("options."):
                with open(self.path(directory, name), encoding="utf-8") as f:
                    found.append(dict(line.rstrip("\n").split("=", 1) for line in f))
        return found

    @staticmethod
    def without_ours(text):
        return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(OURS))

    def assert_refused(self, done, status, *said):
        """Expects a preflight error: this status, one error line that contains this text, and no files left behind."""
        text = done.stderr.decode()
        self.assertEqual(done.returncode, status, text)
        self.assertEqual(done.stdout, b"")
        self.assertTrue(text.startswith("mp-trace: error: "), text)
        for line in text.splitlines():
            self.assertTrue(line.startswith("mp-trace: "), line)
        for part in said:
            self.assertIn(part, text)
