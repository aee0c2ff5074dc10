"""Adapters on demand, from the command line, with a sub-build and a torch that cost nothing.

MP_TRACE names the binary.
"""
import os
import shutil
import subprocess
import sys
import unittest

from trace_support import PYTHON, TraceTest

BUILD = """cmake_minimum_required(VERSION 3.25)
project(adapter NONE)
file(APPEND %s "x")
file(READ ${MP_TORCH_ROOT}/id id)
execute_process(COMMAND sleep 0.5)
add_custom_target(make ALL COMMAND ${CMAKE_COMMAND} -E touch ${MP_ADAPTER_OUT}/libmptrace_torch_${id}.so)
"""
FAIL = """cmake_minimum_required(VERSION 3.25)
project(adapter NONE)
message(FATAL_ERROR "no compiler")
"""


class Adapters(TraceTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("cmake", path=self.env["PATH"]):
            self.skipTest("cmake is not installed")
        self.sources = os.path.join(self.prefix, "share/mp-trace/src/instrument/torch")
        os.makedirs(self.sources)
        self.log = os.path.join(self.top, "builds")
        self.write_build(BUILD % self.log)
        # Something ELF in torch's place: its build id is the adapter's.
        self.site = self.path("site")
        self.torch = os.path.join(self.site, "torch")
        library = self.compile("libtorch_cpu.so", "int torch;", "-shared", "-fPIC", "-Wl,--build-id=0x" + "ab" * 20)
        os.makedirs(os.path.join(self.torch, "lib"))
        shutil.move(library, os.path.join(self.torch, "lib"))
        self.write("site/torch/include/ATen/ATen.h", "")
        self.write("site/torch/version.py", "__version__ = '9.8.7'\n")
        self.write("site/torch/__init__.py", "")
        self.write("site/torch/id", "ab" * 8)
        self.env["PYTHONPATH"] = self.site
        self.cache = os.path.join(self.env["XDG_CACHE_HOME"], "mp-trace/adapters")
        self.library = os.path.join(self.cache, "libmptrace_torch_" + "ab" * 8 + ".so")

    def write_build(self, text):
        with open(os.path.join(self.sources, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write(text)

    def builds(self):
        return os.path.getsize(self.log) if os.path.exists(self.log) else 0

    def test_run_builds_what_is_missing_once(self):
        done = self.run_tool("--", PYTHON, "-c", "print('ran')")
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"), done.stderr)
        self.assertIn(b"building the adapter for torch 9.8.7", done.stderr)
        self.assertTrue(os.path.exists(self.library))
        done = self.run_tool("--", PYTHON, "-c", "print('ran')")
        self.assertNotIn(b"building", done.stderr)
        self.assertEqual(self.builds(), 1)

    def test_run_sees_torch_behind_scripts_and_launchers(self):
        self.write("torchrun", f"#!{PYTHON}\nprint('ran')\n", 0o755)
        for command in (["./torchrun"], ["env", "A=1", PYTHON, "torchrun"]):
            shutil.rmtree(self.cache, ignore_errors=True)
            done = self.run_tool("--", *command)
            self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"), done.stderr)
            self.assertTrue(os.path.exists(self.library), command)

    def test_run_sees_torch_in_a_program(self):
        program = self.compile("program", "extern int torch; int main(void) { return torch + 5; }",
                               f"-L{self.torch}/lib", "-ltorch_cpu", f"-Wl,-rpath,{self.torch}/lib")
        self.assertEqual(self.run_tool("--", program).returncode, 5)
        self.assertTrue(os.path.exists(self.library))

    def test_nothing_is_built_for_others(self):
        for command in (["true"], ["/bin/sh", "-c", "true"], ["cp", "--version", PYTHON]):
            self.assertEqual(self.run_tool("--", *command).returncode, 0)
        self.assertEqual(self.run_tool("--no-build", "--", PYTHON, "-c", "").returncode, 0)
        os.makedirs(os.path.join(self.prefix, "lib/mp-trace/adapters"))
        shutil.copy(self.tool, os.path.join(self.prefix, "lib/mp-trace/adapters", os.path.basename(self.library)))
        self.assertEqual(self.run_tool("--no-build", "--", PYTHON, "-c", "").returncode, 0)
        self.assertEqual(self.builds(), 0)

    def test_run_goes_on_without_an_adapter(self):
        self.write_build(FAIL)
        done = self.run_tool("--", PYTHON, "-c", "print('ran')")
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"))
        [why] = [line for line in done.stderr.decode().splitlines() if "untraced" in line and "failed" in line]
        self.assertIn("no adapter for torch 9.8.7: configuring failed", why)
        quiet = self.run_tool("-q", "--", PYTHON, "-c", "print('ran')")
        self.assertEqual((quiet.returncode, quiet.stdout, quiet.stderr), (0, b"ran\n", b""))

    def test_nothing_is_built_for_a_run_that_cannot_begin(self):
        done = self.run_tool("-o", "no/such/place", "--", PYTHON, "-c", "")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(self.builds(), 0)

    def test_ranks_that_start_together_build_once(self):
        ranks = [subprocess.Popen([self.tool, "--", PYTHON, "-c", "print('ran')"], cwd=self.cwd,
                                  env={**self.env, "RANK": str(r), "WORLD_SIZE": "4"}, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) for r in range(4)]
        self.assertEqual([p.communicate(timeout=60)[0] for p in ranks], [b"ran\n"] * 4)
        self.assertEqual(self.builds(), 1)

    def test_a_killed_build_is_begun_again(self):
        self.write_build(BUILD.replace("sleep 0.5", "sleep 30") % self.log)
        child = subprocess.Popen([self.tool, "build-adapter", "--torch", self.torch], env=self.env, cwd=self.cwd,
                                 stderr=subprocess.PIPE, start_new_session=True)
        child.stderr.readline()  # "building ..."
        os.killpg(child.pid, 9)
        child.wait(timeout=60)
        child.stderr.close()
        self.assertFalse(os.path.exists(self.library))
        self.write_build(BUILD % self.log)
        self.assertEqual(self.run_tool("build-adapter", "--torch", self.torch).returncode, 0)
        self.assertTrue(os.path.exists(self.library))
        self.assertEqual([n for n in os.listdir(self.cache) if n.startswith(".build")], [])

    def test_the_verb_prints_the_path_and_nothing_else_on_stdout(self):
        out = self.path("here")
        done = self.run_tool("build-adapter", "--python", PYTHON, "--out", "here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.decode().strip(), os.path.join(out, os.path.basename(self.library)))
        self.assertEqual(self.run_tool("build-adapter", "--torch", self.torch, "--out", out, "-q").stderr, b"")
        self.assertEqual(self.builds(), 1)
        self.assertEqual(self.run_tool("build-adapter", "--torch", self.torch, "--out", out, "--force").returncode, 0)
        self.assertEqual(self.builds(), 2)

    def test_the_verb_shows_why_it_failed(self):
        self.write_build(FAIL)
        done = self.run_tool("build-adapter", "--torch", self.torch)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"no compiler", done.stderr)
        self.write("file", "x")
        self.assertEqual(self.run_tool("build-adapter", "--torch", self.torch, "--out", "file").returncode, 1)
        shutil.rmtree(os.path.join(self.torch, "include"))
        done = self.run_tool("build-adapter", "--torch", self.torch)
        self.assertIn(b"headers are not installed", done.stderr)

    def test_the_outer_launcher_is_not_in_the_compiler(self):
        self.write_build((BUILD % self.log) +
                         'if(DEFINED ENV{MP_TRACE_OPTIONS} OR "$ENV{LD_PRELOAD}" MATCHES "mptrace")\n'
                         '  message(FATAL_ERROR "traced")\nendif()\n')
        done = self.run_tool("--no-build", "--", self.tool, "-o", "inner", "--", PYTHON, "-c", "")
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"failed", done.stderr)
        self.assertEqual(self.builds(), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
