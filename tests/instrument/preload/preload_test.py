"""libmptrace_preload.so in programs of every kind: `preload_test.py BUILD_FOLDER LIBRARY [unittest options]`.

A fake libtorch and a stub adapter replace the real ones. Both write to stdout, so that the test can read the order of
events there.
"""
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

HERE, LIBRARY = sys.argv[1], sys.argv[2]
HOST, LINKED, STATIC = (os.path.join(HERE, name) for name in ("host", "host_linked", "host_static"))
TORCH = os.path.join(HERE, "torch", "libtorch_cpu.so")
PLAIN_TORCH = os.path.join(HERE, "plain", "libtorch_cpu.so.1.13")
LIBRARIES = os.path.join(HERE, "libraries")
LEAF, NESTS, CALLER = (os.path.join(LIBRARIES, f"lib{name}.so") for name in ("leaf", "nests", "caller"))
ATTACH = "attach ready=1 options.test\n"


class Preload(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="preload-")
        self.addCleanup(shutil.rmtree, self.folder)

    def options(self, adapters=(os.path.join(HERE, "adapters"),), quiet="0"):
        path = os.path.join(self.folder, "options.test")
        with open(path, "w", encoding="utf-8") as out:
            out.write("mode=watch\nadapters=" + ":".join(
                a.replace("\\", "\\\\").replace(":", "\\:").replace("\n", "\\n") for a in adapters))
            out.write(f"\nquiet={quiet}\n")
        return path

    def run_it(self, *command, options=None, preload=LIBRARY, **more):
        environment = {"PATH": os.environ["PATH"], "HOST_TORCH": TORCH, "HOST_LEAF": LEAF, **more.pop("env", {})}
        if preload:
            environment["LD_PRELOAD"] = preload
        if options:
            environment["MP_TRACE_OPTIONS"] = options
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60, **more)

    def check(self, result, stdout, stderr="", status=0):
        self.assertEqual((result.stdout, result.stderr, result.returncode), (stdout, stderr, status))

    # When it attaches

    def test_a_program_linked_with_torch_is_attached_before_main(self):
        self.check(self.run_it(LINKED, options=self.options()), ATTACH + "main\n")

    def test_a_program_that_loads_torch_is_attached_when_the_load_returns(self):
        self.check(self.run_it(HOST, "open", LEAF, TORCH, LEAF, TORCH, options=self.options()),
                   "main\nopened\n" + ATTACH + "opened\n" * 3)

    def test_without_the_variable_nothing_happens(self):
        self.check(self.run_it(LINKED), "main\n")
        self.check(self.run_it(HOST, "open", TORCH), "main\nopened\n")

    def test_a_program_without_torch_is_left_alone(self):
        self.check(self.run_it(HOST, "open", LEAF, options=self.options()), "main\nopened\n")

    def test_nothing_attaches_inside_another_load(self):
        self.check(self.run_it(HOST, "open", NESTS, options=self.options()),
                   "main\nconstructor ends\n" + ATTACH + "opened\n")

    def test_nothing_attaches_inside_a_load_by_bare_name(self):
        # The load by bare name is jumped to, so the attach waits for the next load by path.
        self.check(self.run_it(HOST, "open", "libnests.so", LEAF, options=self.options(),
                               env={"LD_LIBRARY_PATH": LIBRARIES}),
                   "main\nconstructor ends\nopened\n" + ATTACH + "opened\n")

    def test_a_variable_that_the_program_removes_has_been_read(self):
        self.check(self.run_it(HOST, "unset", TORCH, options=self.options()), "main\n" + ATTACH + "opened\n")

    def test_looking_whether_torch_is_loaded_passes_through(self):
        self.check(self.run_it(HOST, "noload", TORCH, options=self.options()), "main\nnot there\n")
        self.check(self.run_it(LINKED, "noload", TORCH, options=self.options()), ATTACH + "main\nthere\n")

    def test_a_name_space_of_its_own_passes_through(self):
        self.check(self.run_it(HOST, "namespace", LEAF, options=self.options()), "main\nopened apart\n")

    def test_eight_threads_attach_once(self):
        for _ in range(10):
            self.check(self.run_it(HOST, "threads", TORCH, options=self.options()), "main\n" + ATTACH)

    def test_the_id_of_a_torch_without_build_id_is_its_size(self):
        name = f"size-{os.path.getsize(PLAIN_TORCH)}"
        result = self.run_it(HOST, "open", PLAIN_TORCH, options=self.options())
        self.assertIn(f"({name})", result.stderr)
        adapters = os.path.join(self.folder, "adapters")
        os.mkdir(adapters)
        # Its needs are served by the fake with the build id, loaded here by the adapter itself.
        shutil.copy(os.path.join(HERE, "adapters", "libmptrace_torch_0123456789abcdef.so"),
                    os.path.join(adapters, f"libmptrace_torch_{name}.so"))
        self.check(self.run_it(HOST, "open", PLAIN_TORCH, options=self.options([adapters]),
                               env={"LD_LIBRARY_PATH": os.path.dirname(TORCH)}), "main\n" + ATTACH + "opened\n")

    def test_folders_are_tried_in_order_and_may_have_odd_names(self):
        odd = os.path.join(self.folder, "a:b\\c\nd e")
        os.mkdir(odd)
        shutil.copy(os.path.join(HERE, "adapters", "libmptrace_torch_0123456789abcdef.so"), odd)
        self.check(self.run_it(LINKED, options=self.options(["/nonexistent", "", "x" * 5000, odd])), ATTACH + "main\n")

    # Properties that it does not change

    def test_bare_names_are_found_along_the_callers_runpath(self):
        for preload in (None, LIBRARY):
            self.check(self.run_it(HOST, "by-library", CALLER, "libsecret.so", options=self.options(), preload=preload),
                       "main\nfound 1\n")

    def test_origin_in_a_name_is_the_callers(self):
        for preload in (None, LIBRARY):
            self.check(self.run_it(HOST, "by-library", CALLER, "$ORIGIN/private/libsecret.so", options=self.options(),
                                   preload=preload), "main\nfound 1\n")

    def test_errno_and_dlerror_are_those_of_the_untraced_run(self):
        command = (HOST, "errors", LEAF, "/nonexistent.so", "nonexistent.so", TORCH, LEAF)
        untraced = self.run_it(*command, preload=None)
        # One that loads, none, and one whose failure leaves something for dlerror().
        for adapters in ("adapters", "nonexistent", "unresolved", "without_entry"):
            options = self.options([os.path.join(HERE, adapters)], quiet="1")
            traced = self.run_it(*command, options=options)
            self.assertEqual(traced.stdout.replace(ATTACH, ""), untraced.stdout)
            self.assertEqual((traced.stderr, traced.returncode), ("", 0))

    def test_exit_statuses_and_signals_are_those_of_the_untraced_run(self):
        options = self.options()
        for status in range(0, 256, 17):
            self.assertEqual(self.run_it(LINKED, "exit", str(status), options=options).returncode, status)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGFPE,
                       signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE, signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1,
                       signal.SIGUSR2, signal.SIGBUS, signal.SIGXFSZ):
            self.assertEqual(self.run_it(LINKED, "signal", str(int(number)), options=options).returncode, -number)

    def test_a_thousand_forks_from_eight_threads_end_well(self):
        self.check(self.run_it(HOST, "forks", TORCH, options=self.options()), "main\n" + ATTACH + "opened\n")

    def test_a_static_program_is_untouched(self):
        self.check(self.run_it(STATIC, "exit", "3", options=self.options()), "main\n", status=3)

    def test_a_set_user_id_program_is_untouched(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to make a program set-user-ID")
        program = os.path.join(self.folder, "host")
        shutil.copy(LINKED, program)
        os.chown(program, 1, 1)
        os.chmod(program, 0o755 | stat.S_ISUID | stat.S_ISGID)
        os.chmod(self.folder, 0o755)
        if not os.stat(program).st_mode & stat.S_ISUID or os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("this file system has no set-user-ID programs")
        self.check(self.run_it(program, options=self.options(), preexec_fn=lambda: os.setresuid(65534, 65534, 65534)),
                   "main\n")

    def test_thirty_five_shells_in_shells_say_what_they_say_untraced(self):
        script = os.path.join(self.folder, "shim")
        with open(script, "w", encoding="utf-8") as out:
            # As pyenv's shims: a shell that looks around, then becomes the next one.
            out.write('#!/bin/bash\nset -e\nn=$1\nhere="$(dirname "$(readlink -f "$0")")"\n'
                      'if [ "$n" -gt 0 ]; then exec "$here/shim" $((n - 1)); fi\nprintf "end %s\\n" "$(env | wc -l)"\n')
        os.chmod(script, 0o755)
        # The environment has two variables more, and nothing else differs.
        untraced = self.run_it(script, "11", preload=None, env={"LD_PRELOAD_": "", "MP_TRACE_OPTIONS_": ""})
        traced = self.run_it(script, "11", options=self.options())
        self.check(traced, untraced.stdout)
        self.assertIn("end ", traced.stdout)

    def test_helpers_of_python_stay_inert(self):
        for argument in ("from multiprocessing.resource_tracker import main;main(5)",
                         "from multiprocessing.forkserver import main; main(5, 6, [], **{})",
                         "/x/torch/_inductor/compile_worker/__main__.py"):
            self.check(self.run_it(LINKED, "-c", argument, options=self.options()), "main\n")
        self.check(self.run_it(LINKED, "-c", "from multiprocessing.spawn import spawn_main; spawn_main(fd=3)",
                               "--multiprocessing-fork", options=self.options()), ATTACH + "main\n")

    def test_a_child_of_the_fork_server_is_no_helper(self):
        self.check(self.run_it(HOST, "child", TORCH, "from multiprocessing.forkserver import main; main(5)",
                               options=self.options()), "main\n" + ATTACH + "opened\n")

    # How it refuses

    def refused(self, *command, **more):
        result = self.run_it(*command, **more)
        self.assertEqual((result.stdout.replace(ATTACH, ""), result.returncode), ("main\n", 0))
        self.assertRegex(result.stderr, r"\Amp-trace: [^\n]*; the program runs untraced\n\Z")
        return result.stderr

    def test_no_adapter_is_one_line_and_a_hint(self):
        line = self.refused(LINKED, options=self.options(["/nonexistent", self.folder]))
        self.assertIn("0123456789abcdef", line)
        self.assertIn("mp-trace build-adapter", line)

    def test_an_adapter_with_a_missing_symbol_is_refused(self):
        line = self.refused(LINKED, options=self.options([os.path.join(HERE, "unresolved")]))
        self.assertIn("not_in_any_torch", line)

    def test_an_adapter_without_its_entry_is_refused(self):
        line = self.refused(LINKED, options=self.options([os.path.join(HERE, "without_entry")]))
        self.assertIn("mptrace_attach", line)

    def test_an_adapter_may_refuse(self):
        self.assertIn("refused", self.refused(LINKED, options=self.options(), env={"STUB_RETURN": "3"}))

    def test_options_that_cannot_be_read_are_named(self):
        self.assertIn("/nonexistent/options", self.refused(LINKED, options="/nonexistent/options"))
        long = self.options(["/" + "x" * 70000])
        self.assertIn(long, self.refused(LINKED, options=long))
        self.assertIn(self.folder, self.refused(LINKED, options=self.folder))

    def test_quiet_is_quiet(self):
        self.check(self.run_it(LINKED, options=self.options(["/nonexistent"], quiet="1")), "main\n")

    def test_a_closed_or_full_stderr_harms_nobody(self):
        options = self.options(["/nonexistent"])
        reader, writer = os.pipe()
        os.close(reader)
        self.check(self.run_it(LINKED, options=options, stderr=writer), "main\n", None)
        os.close(writer)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        self.check(self.run_it(LINKED, options=options, stderr=writer), "main\n", None)
        os.close(reader)
        os.close(writer)
        self.check(self.run_it(LINKED, options=options, preexec_fn=lambda: os.close(2)), "main\n")

    # Properties of the library itself

    def test_it_exports_little_and_needs_libc_alone(self):
        def output(*command):
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout
        names = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", LIBRARY).splitlines()}
        self.assertEqual(names, {"__libc_start_main", "dlopen", "mptrace_layer_push", "mptrace_layer_pop",
                                 "mptrace_tensor", "mptrace_loss", "mptrace_step"})
        needed = re.findall(r"NEEDED.*\[(.*?)\]", output("readelf", "-d", LIBRARY))
        self.assertLessEqual(set(needed), {"libc.so.6", "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"})
        self.assertIn("NODELETE", output("readelf", "-d", LIBRARY))
        self.assertNotIn("INIT_ARRAY ", "".join(re.findall(r"\(INIT_ARRAY\).*\n", output("readelf", "-d", LIBRARY))))
        self.assertLessEqual(os.path.getsize(LIBRARY), 20480)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
