"""`cmake --install` into an empty directory gives a working mp-lint and mp-trace, and all that an adapter is
built from.

    install_test.py BUILD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.realpath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SOURCES = "share/mp-trace/src"
CODE = """
#include <cuda_fp16.h>
__global__ void scale(__half* x, int n) { for (int i = 0; i < n; ++i) x[i] = x[i] * __float2half(1e-9f); }
"""


def included(path):
    with open(path) as f:
        text = f.read()
    return set(re.findall(r'^#include "((?:instrument|runtime|kernels)/[^"]+)"', text, re.M))


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = os.path.realpath(tempfile.mkdtemp(prefix="mp-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        cls.prefix = os.path.join(cls.top, "prefix")
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr)

    def run_tool(self, tool, *words, **more):
        env = {"HOME": self.top, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        return subprocess.run([os.path.join(self.prefix, "bin", tool), *words], capture_output=True, text=True,
                              cwd=self.top, env=env, timeout=300, **more)

    def files(self, *below):
        top = os.path.join(self.prefix, *below)
        return sorted(os.path.relpath(os.path.join(at, name), top) for at, _, names in os.walk(top) for name in names)

    def test_every_part_of_mp_trace_is_there(self):
        parts = self.files("lib/mp-trace")
        for part in ("libmptrace_preload.so", "libmp_measure.a", "python/sitecustomize.py",
                     "python/mptrace_shim/install.py"):
            self.assertIn(part, parts)
        built = os.path.join(BUILD, "lib/mp-trace/adapters")
        adapters = [name for name in os.listdir(built) if name.endswith(".so")] if os.path.isdir(built) else []
        for adapter in adapters:
            self.assertIn("adapters/" + adapter, parts)

    def test_mp_trace_finds_its_own_parts(self):
        done = self.run_tool("mp-trace", "version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"preload: {self.prefix}/lib/mp-trace/libmptrace_preload.so", done.stdout)
        self.assertIn(f"adapter sources: {self.prefix}/{SOURCES}", done.stdout)

    def test_one_version_everywhere(self):
        with open(os.path.join(BUILD, "CMakeCache.txt")) as f:
            project = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(\S+)$", f.read(), re.M).group(1)
        for tool in ("mp-lint", "mp-trace"):
            done = self.run_tool(tool, "--version")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.splitlines()[0], f"{tool} {project}")

    def test_no_binary_knows_the_switches_of_tests(self):
        with open(os.path.join(ROOT, "instrument/torch/test_hooks.hpp")) as f:
            switches = {name.encode() for name in re.findall(r"MP_TRACE_TEST_\w+", f.read())}
        self.assertGreater(len(switches), 2)
        binaries = 0
        for name in self.files():
            with open(os.path.join(self.prefix, name), "rb") as f:
                content = f.read()
            if not content.startswith((b"\x7fELF", b"!<arch>")):
                continue  # the sources of the adapter have them, behind MP_TEST_HOOKS
            binaries += 1
            self.assertEqual([s for s in switches if s in content], [], name)
            self.assertNotIn(b"MP_TRACE_TEST_", content, name)
        self.assertGreater(binaries, 3)

    def test_a_program_runs_below_it(self):
        done = self.run_tool("mp-trace", "-o", "run", "--", "/bin/echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)

    def test_the_sources_of_an_adapter_are_whole(self):
        top = os.path.join(self.prefix, SOURCES)
        files = self.files(SOURCES)
        self.assertTrue(files)
        wanted = set().union(*(included(os.path.join(top, name)) for name in files if name.endswith((".cpp", ".hpp"))))
        self.assertEqual(sorted(wanted - set(files)), [], "included and not installed")
        with open(os.path.join(top, "instrument/torch/CMakeLists.txt")) as f:
            named = set(re.findall(r"\$\{root\}/([a-z_/]+\.cpp)", f.read()))
        self.assertTrue(named)
        self.assertEqual(sorted(named - set(files)), [], "compiled and not installed")
        units = {name for name in files if name.endswith(".cpp") and not name.startswith("instrument/torch/")}
        self.assertEqual(sorted(units - named), [], "installed and never compiled")

    def test_build_adapter_finds_the_sources_and_stops_at_the_torch(self):
        os.makedirs(os.path.join(self.top, "no-torch"))
        done = self.run_tool("mp-trace", "build-adapter", "--torch", "no-torch", "--out", "adapters")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no-torch", done.stderr)
        self.assertNotIn("sources are missing", done.stderr)

    def test_mp_lint_reads_cuda_with_the_installed_headers(self):
        with open(os.path.join(self.top, "scale.cu"), "w") as f:
            f.write(CODE)
        done = self.run_tool("mp-lint", "facts", "--cuda", "stubs", "--isolated", "scale.cu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("scale", done.stdout)
        self.assertTrue(self.files("share/mp-lint/headers/cuda"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
