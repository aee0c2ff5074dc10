"""How libmptrace_cuda.so behaves in processes: inert, forked, with threads, with unbalanced ranges.

    process_test.py MP_TRACE NVTX_PROGRAM LIBRARY LOADING_PROGRAM MODULES
"""
import os
import subprocess
import sys
import tempfile
import unittest

TOOL, PROGRAM, LIBRARY, LOADING, MODULES = sys.argv[1:6]
del sys.argv[1:6]


class Process(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.run_dir = os.path.join(self.directory.name, "run")

    def traced(self, *words, program=PROGRAM):
        done = subprocess.run([TOOL, "-q", "-o", self.run_dir, "--", program, *words], capture_output=True, text=True,
                              timeout=60)
        plain = subprocess.run([program, *words], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (plain.returncode, plain.stdout, plain.stderr))
        return done

    def recordings(self):
        return sorted(os.path.join(folder, name) for folder, _, files in os.walk(self.run_dir) for name in files
                      if name.endswith(".mpt"))

    def dump(self, path):
        return subprocess.run([TOOL, "dump", path], capture_output=True, text=True, check=True).stdout

    def test_needs_libc_alone(self):
        needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
        names = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "NEEDED" in line}
        self.assertLessEqual(names, {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"})

    def test_exports_what_it_replaces(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True,
                                 check=True).stdout.split()[2::3]
        ours = ("InitializeInjection", "mptrace_", "cublas", "nccl")
        self.assertEqual([s for s in symbols if not s.startswith(ours)], [])
        self.assertIn("cublasLtMatmul", symbols)

    def test_without_events_there_is_no_file(self):
        self.traced("none")
        self.traced("-c", "echo hello", program="/bin/sh")
        self.assertEqual(self.recordings(), [])

    def test_ranges_give_steps(self):
        self.traced("plain")
        (path,) = self.recordings()
        text = self.dump(path)
        self.assertIn('framework="CUDA libraries"', text)
        self.assertEqual([line.split()[1] for line in text.splitlines() if line.startswith("step ")], ["0", "1", "2"])

    def test_an_exit_status_is_no_orderly_end(self):
        for how, status in (("fails", 3), ("plain", 0)):
            with self.subTest(how=how):
                self.run_dir = os.path.join(self.directory.name, how)
                self.assertEqual(self.traced(how).returncode, status)
                gate = subprocess.run([TOOL, "gate", self.run_dir], capture_output=True, text=True)
                self.assertEqual("the program ended with status 3" in gate.stdout, status == 3, gate.stdout)

    def test_a_forked_child_has_its_own_file(self):
        self.traced("fork")
        steps = sorted(self.dump(path).count("\nstep ") for path in self.recordings())
        self.assertEqual(steps, [2, 4])

    def test_a_child_never_waits_for_a_thread_of_its_parent(self):
        self.assertIn("children that hung: 0", self.traced("forks").stdout)

    def steps(self, *words):
        self.traced(*words)
        return sum(self.dump(path).count("\nstep ") for path in self.recordings())

    def test_a_domain_of_the_program_is_heard_and_one_of_a_library_is_not(self):
        for domain, steps in (("training", 3), ("custom", 3), ("curriculum", 3), ("CUSTOM", 3), ("cuBLAS", 0),
                              ("cuDNN", 0), ("CUB", 0), ("NCCL", 0)):
            with self.subTest(domain=domain):
                self.run_dir = os.path.join(self.directory.name, domain)
                self.assertEqual(self.steps("domain", domain), steps)

    def test_two_modules_share_a_domain_by_its_name(self):
        self.assertEqual(self.steps("two modules", "training"), 3)
        (path,) = self.recordings()
        self.assertNotIn("a pop without a range", self.dump(path))

    def test_wide_names(self):
        self.assertEqual(self.steps("wide"), 3)

    def test_threads(self):
        self.traced("threads")
        (path,) = self.recordings()
        self.assertGreaterEqual(self.dump(path).count("\nstep "), 100)

    def test_a_pop_without_a_range_is_told(self):
        self.traced("unbalanced")
        (path,) = self.recordings()
        self.assertIn("a pop without a range", self.dump(path))

    def skipped(self, how):
        self.traced(how)
        (path,) = self.recordings()
        steps = [line.split() for line in self.dump(path).splitlines() if line.startswith("step ")]
        self.assertEqual(len(steps), 23)
        return [int(words[1]) for words in steps if "skipped=yes" in words]

    def test_a_step_without_its_update_is_skipped(self):
        self.assertEqual(self.skipped("skips"), [4, 15])  # after three steps with other ranges

    def test_gradients_accumulate_over_steps(self):
        self.assertEqual(self.skipped("accumulates"), [])

    def test_a_program_may_not_name_its_update(self):
        self.assertEqual(self.skipped("never updates"), [])

    def test_steps_of_annotations(self):
        self.traced("annotated")
        (path,) = self.recordings()
        text = self.dump(path)
        self.assertIn("step 1 optimizer=0 skipped=yes", text)
        self.assertIn("loss_scale=0x1p+10", text)

    def test_calls_of_modules_reach_the_real_library(self):
        for module in ("libcuda_module.so", "libcuda_root.so"):
            words = [os.path.join(MODULES, module)]
            for more in ([], ["torch", os.path.join(MODULES, "libtorch_cpu.so")]):
                with self.subTest(module=module, more=more):
                    done = self.traced(*words, *more, program=LOADING)
                    self.assertEqual(done.stdout, "43\n" * 3 + "error: none\n")

    def test_another_tools_injection_keeps_its_place(self):
        environment = dict(os.environ, NVTX_INJECTION64_PATH="/nonexistent/nsys.so")
        done = subprocess.run([TOOL, "-q", "-o", self.run_dir, "--", "/bin/sh", "-c", "echo $NVTX_INJECTION64_PATH"],
                              capture_output=True, text=True, env=environment, check=True)
        self.assertEqual(done.stdout, "/nonexistent/nsys.so\n")


if __name__ == "__main__":
    unittest.main()
