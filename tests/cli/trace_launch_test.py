"""The launcher from outside: environment, run directories, hostile options, bad layouts, other launchers.

MP_TRACE names the binary; MP_TRACE_TORCHRUN a torchrun, when there is one.
"""
import os
import shutil
import stat
import subprocess
import sys
import unittest

from trace_support import PYTHON, TraceTest

SHOW = "import os; print(*(os.environ.get(k) for k in ('LD_PRELOAD', 'PYTHONPATH', 'MP_TRACE_OPTIONS')), sep='|')"


class Environment(TraceTest):
    def shown(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode().rstrip("\n").split("|")

    def test_three_variables_are_set(self):
        preload, python_path, options = self.shown(self.trace(PYTHON, "-c", SHOW))
        self.assertEqual((preload, python_path), (self.preload, self.shim))
        self.assertTrue(os.path.isfile(options))
        self.assertEqual(stat.S_IMODE(os.stat(options).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(options)).st_mode), 0o700)

    def test_what_was_there_stays_in_its_order(self):
        one = self.compile("one.so", "int one;", "-shared", "-fPIC")
        two = self.compile("two.so", "int two;", "-shared", "-fPIC")
        env = {"LD_PRELOAD": f"{one} {two}", "PYTHONPATH": "x::y"}
        preload, python_path, _ = self.shown(self.trace(PYTHON, "-c", SHOW, env=env))
        self.assertEqual(preload, f"{self.preload}:{one} {two}")
        self.assertEqual(python_path, f"{self.shim}:x::y")

    def test_nested_launchers_preload_once(self):
        inner = [self.tool, "-q", "--no-build", "-o", "inner", "--", PYTHON, "-c", SHOW]
        preload, python_path, options = self.shown(self.trace(*inner))
        self.assertEqual((preload, python_path), (self.preload, self.shim))
        self.assertTrue(options.startswith(self.path("inner/")), "the nearer one decides")
        other = self.install("other")
        preload, _, _ = self.shown(self.trace(os.path.join(other, "bin", "mp-trace"), *inner[1:]))
        self.assertEqual(preload, os.path.join(other, "lib/mp-trace/libmptrace_preload.so"))

    def test_options_reach_the_file(self):
        os.mkdir(self.path("mine"))
        self.trace("true", options=["-o", "out", "--mode", "trajectory", "--steps", "10:20:5", "--ranks", "0,8-15",
                                    "--budget", "1G", "--overhead", "3%", "--save-twin", "t.%r", "--save-real=r.%p",
                                    "--eager", "--device-times", "--free-ints", "--twin-noise",
                                    "--step-range", "update *", "--quiet", "--adapters", "mine"])
        [options] = self.options_in("out")
        cache = os.path.join(self.env["XDG_CACHE_HOME"], "mp-trace/adapters")
        self.assertEqual(options, {
            "run_dir": self.path("out"), "mode": "trajectory", "steps": "10:20:5", "ranks": "0-0:8-15",
            "overhead": "0.030000", "budget": str(1 << 30), "save_twin": self.path("t.%r"),
            "save_real": self.path("r.%p"),
            "eager": "1", "device_times": "1", "free_ints": "1", "twin_noise": "1", "step_range": "update *",
            "quiet": "1",
            "tool": self.prefix + "/bin/mp-trace",
            "adapters": ":".join([self.path("mine"), self.prefix + "/lib/mp-trace/adapters", cache])})

    def test_the_start_line_says_where(self):
        done = self.trace("true", options=["-o", "my run"])
        self.assertEqual(done.stderr.decode(),
                         "mp-trace: watching dtypes, loss scale, skipped steps, collectives → 'my run/'\n")


class Directories(TraceTest):
    def test_every_run_has_its_own(self):
        for _ in range(3):
            self.assertEqual(self.trace("true", options=["-o", "run"]).returncode, 0)
        self.assertEqual(self.directories(), ["run", "run.2", "run.3"])
        self.trace("true")
        [named] = [d for d in self.directories() if d.startswith("mp-trace.")]
        self.assertTrue(named.split(".")[1].isdigit())

    def test_keys_are_expanded_and_kept_inside(self):
        done = self.trace("true", options=["-o", "r%r-l%l-s%s-c%c-%%-%q{WHO}"], env={"WHO": "../../x/y"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.directories(), ["rx-lx-sx-c0-%-_._.._x_y"])

    def test_odd_names_work(self):
        for name in ("a b", "a\nb", "a:b", "-dash", "ü\udcff", "\\n", "a" * 200):
            done = self.trace("true", options=["-o", "./" + name])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(name, self.directories())
            self.assertEqual(len(done.stderr.splitlines()), 1, "no name starts a line of its own")

    def test_a_working_directory_with_an_odd_name(self):
        odd = self.path("50% of: it\n")
        os.mkdir(odd)
        done = self.trace("true", options=["--mode", "step", "--save-twin", "t.%r"], cwd=odd)
        self.assertEqual(done.returncode, 0, done.stderr)
        [name] = os.listdir(odd)
        [options] = self.options_in(os.path.join(odd, name))
        self.assertEqual(options["save_twin"], self.path("50%% of\\: it\\n/t.%r"))


class Refusals(TraceTest):
    """Twelve layouts and more in which nothing may start and nothing may be left."""

    def tearDown(self):
        self.assertFalse(os.path.exists(self.path("ran")), "the program was started")

    def refused(self, status, said, *options, command=("touch", "ran"), **more):
        before = sorted(os.listdir(self.cwd))
        self.assert_refused(self.trace(*command, options=options, **more), status, said)
        self.assertEqual(sorted(os.listdir(self.cwd)), before, "something was left behind")

    def test_commands_that_cannot_start(self):
        self.write("text", "x")
        self.write("interpreter-gone", "#!/nowhere/python3\n", 0o755)
        self.write("windows", "#!/bin/sh\r\n", 0o755)
        self.refused(127, "not found in PATH", command=["nothing-of-this-name"])
        self.refused(127, "No such file", command=["./gone"])
        self.refused(127, "Not a directory", command=["./text/x"])
        self.refused(126, "Permission denied", command=["./text"])
        self.refused(126, "not executable", command=["."])
        self.refused(126, "Permission denied", command=["/"])
        self.refused(127, "/nowhere/python3", command=["./interpreter-gone"])
        self.refused(127, "no such command", command=[""])
        self.assert_refused(self.run_tool("--"), 125, "no command")
        self.assert_refused(self.run_tool("run"), 125, "no command")

    def test_a_program_that_execve_refuses(self):
        broken = self.write("broken", b"\x7fELF" + b"\0" * 200, 0o755)
        done = self.trace(broken)
        bare = subprocess.run(["env", broken], capture_output=True, env=self.env)
        self.assertEqual(done.returncode, bare.returncode)
        self.assertEqual(self.directories(), [])

    def test_arguments_that_only_the_program_finds_too_long(self):
        def attempt(size):
            words = ["x" * 100000] * (size // 100000) + ["x" * (size % 100000)]
            try:
                return self.trace("true", *words, options=["-q"]).returncode
            except OSError:
                return None  # mp-trace itself cannot be started

        fits, too_much = 100000, 8 << 20
        if attempt(too_much) is not None:
            self.skipTest("this kernel takes them")
        while too_much - fits > 1:
            middle = (fits + too_much) // 2
            if attempt(middle) is None:
                too_much = middle
            else:
                fits = middle
        before = self.directories()
        # Our three variables are longer than our own words on the command line.
        self.assertEqual(attempt(fits), 126)
        self.assertEqual(self.directories(), before)

    def test_hostile_option_values(self):
        for options, said in {
                ("--mode", "trajektory"): "did you mean 'trajectory'?",
                ("--mode", ""): "not a mode",
                ("--mode", "\033[2J"): "\\x1b[2J",
                ("--steps", "5:5"): "no step",
                ("--steps", "0:10:0"): "0th",
                ("--steps", "-1:2"): "range of steps",
                ("--steps", "9" * 400): "range of steps",
                ("--ranks", "3-1"): "backwards",
                ("--ranks", "a"): "list of ranks",
                ("--budget", "0"): "64K",
                ("--budget", "1e9"): "not a size",
                ("--budget", "99999999T"): "too large",
                ("--save-twin", "t"): "no twin",
                ("--save-twin", ""): "empty",
                ("-o", ""): "empty",
                ("-o", "%q{NOT_SET_AT_ALL}"): "not set",
                ("-o", "%q{"): "without '}'",
                ("-o", "%Z"): "unknown key",
                ("-o", "a" * 5000): "too long",
                ("--adapters", "gone"): "not a directory",
                ("--save-real", "gone/x"): "mkdir -p",
                ("--mdoe", "step"): "did you mean '--mode'?",
                ("--quiett",): "did you mean '--quiet'?",
                ("-Z",): "unknown option",
                ("--eager=yes",): "eager",
                ("--mode", "step", "--mode", "local"): "more than once"}.items():
            with self.subTest(options=options):
                self.refused(125, said, *options)

    def test_an_option_without_its_value_does_not_take_the_command(self):
        for option in ("--mode", "-o", "--output", "--save-real"):
            self.assert_refused(self.run_tool(option, "--", "touch", "ran"), 125, "is missing")
            self.assertEqual(os.listdir(self.cwd), [])

    def test_a_file_where_the_directory_should_be(self):
        self.write("file", "x")
        self.refused(125, "not a directory", "-o", "file")
        self.refused(125, "Not a directory", "-o", "file/run")
        self.refused(125, "not a directory", "-o", "/dev/full")
        self.refused(125, "not a directory", "-o", "/dev/null")

    def test_a_missing_parent(self):
        self.refused(125, "mkdir -p", "-o", "no/such/place")

    def test_a_symbolic_link(self):
        os.mkdir(self.path("target"))
        os.symlink("target", self.path("link"))
        os.symlink("nowhere", self.path("dangling"))
        os.symlink("loop", self.path("loop"))
        for name in ("link", "dangling", "loop"):
            self.refused(125, "symbolic link", "-o", name)
            self.refused(125, "symbolic link", "-o", name, env={"RANK": "0"})
        self.assertEqual(os.listdir(self.path("target")), [])

    def test_a_read_only_working_directory(self):
        for place in ("/proc", "/sys"):  # read-only for root, too
            done = self.trace("touch", self.path("ran"), cwd=place)
            self.assert_refused(done, 125, "-o")

    def test_a_working_directory_that_is_gone(self):
        gone = self.path("gone")
        os.mkdir(gone)
        done = subprocess.run(["/bin/sh", "-c", f'rmdir "{gone}"; exec "$0" --no-build -- touch ran', self.tool],
                              cwd=gone, env=self.env, capture_output=True)
        self.assert_refused(done, 125, "working directory")

    def test_a_directory_of_somebody_else(self):
        if os.getuid() != 0:
            self.skipTest("only root can give a directory away")
        os.mkdir(self.path("theirs"))
        os.chown(self.path("theirs"), 65534, 65534)
        self.refused(125, "another user", "-o", "theirs", env={"RANK": "0"})

    def test_a_full_disk(self):
        small = self.path("small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=64", "tmpfs", small],
                          capture_output=True).returncode:
            self.skipTest("no tmpfs can be mounted here")
        self.addCleanup(subprocess.run, ["umount", small])
        with open(os.path.join(small, "fill"), "wb", buffering=0) as f:
            try:
                while f.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                pass
        done = self.trace("touch", "ran", options=["-o", "small/run"])
        self.assert_refused(done, 125, "No space left")
        self.assertEqual(os.listdir(small), ["fill"])

    def test_a_file_size_limit(self):
        done = subprocess.run(["/bin/sh", "-c", 'ulimit -f 0; exec "$0" --no-build -- touch ran', self.tool],
                              cwd=self.cwd, env=self.env, capture_output=True)
        self.assert_refused(done, 125, "File too large")
        self.assertEqual(os.listdir(self.cwd), [])

    def test_a_broken_installation(self):
        shutil.rmtree(self.shim)
        self.refused(125, "not wholly installed")
        os.mkdir(self.shim)
        os.unlink(self.preload)
        self.refused(125, "not wholly installed")

    def test_an_installation_that_no_loader_could_find(self):
        self.prefix = self.install("my programs")
        self.tool = os.path.join(self.prefix, "bin", "mp-trace")
        self.refused(125, "LD_PRELOAD can hold no path with blanks")

    def test_without_home_there_is_no_cache_but_a_run(self):
        env = {k: v for k, v in self.env.items() if k not in ("HOME", "XDG_CACHE_HOME")}
        done = subprocess.run([self.tool, "-o", "run", "--no-build", "--", "true"], cwd=self.cwd, env=env,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.options_in("run")[0]["adapters"], self.prefix + "/lib/mp-trace/adapters")
        done = subprocess.run([self.tool, "build-adapter"], cwd=self.cwd, env=env, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"HOME is not set", done.stderr)

    def test_an_empty_environment(self):
        done = subprocess.run([self.tool, "--no-build", "--", "/usr/bin/env"], cwd=self.cwd, env={},
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(line.split(b"=")[0] for line in done.stdout.splitlines())
        self.assertEqual(names, [b"LD_PRELOAD", b"MP_TRACE_OPTIONS", b"PYTHONPATH"])


class Untraceable(TraceTest):
    def test_a_static_program_runs_and_what_it_starts_is_traced(self):
        program = self.compile("static", "#include <unistd.h>\nint main(void) { execl(\"/usr/bin/env\", \"env\", "
                               "(char*)0); return 1; }", "-static")
        done = self.trace(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"not traceable: statically linked", done.stderr)
        self.assertIn(b"LD_PRELOAD=" + self.preload.encode(), done.stdout)
        self.assertEqual(self.trace(program, options=["-q"]).stderr, b"")

    def test_a_setuid_program_runs_as_it_is(self):
        if os.getuid() != 0:
            self.skipTest("only root can make a program of somebody else")
        program = self.path("su")
        shutil.copy("/usr/bin/env", program)
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        done = self.trace(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"not traceable", done.stderr)
        self.assertNotIn(b"MP_TRACE", done.stdout)
        self.assertEqual(self.directories(), [])

    def test_a_program_of_another_word_size_runs_as_it_is(self):
        program = self.compile("small", "int main(void) { return 7; }", "-m32", "-static", "-nostdlib", "-e", "main")
        done = self.trace(program)
        self.assertIn(b"32-bit", done.stderr)
        self.assertNotIn(b"ERROR: ld.so", done.stderr)


class Launchers(TraceTest):
    """Ranks share one directory, and each has its own options file."""

    VARIABLES = {
        "torchrun": lambda rank: {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "4",
                                  "TORCHELASTIC_RUN_ID": "my job/7"},
        "srun": lambda rank: {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NTASKS": "4",
                              "SLURM_JOB_ID": "991"},
        "openmpi": lambda rank: {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
                                 "OMPI_COMM_WORLD_SIZE": "4"},
        "mpich": lambda rank: {"PMI_RANK": str(rank), "PMI_SIZE": "4"},
    }

    # Each rank has its own file: what ranks print to one pipe interleaves.
    TO_A_FILE = "import os; open('rank.' + os.environ['{rank}'], 'w').write(os.environ['MP_TRACE_OPTIONS'])"

    def options_by_rank(self):
        """What the ranks of one launch wrote, and the files are gone: {rank: MP_TRACE_OPTIONS}."""
        found = {}
        for name in [name for name in os.listdir(self.cwd) if name.startswith("rank.")]:
            with open(self.path(name)) as written:
                found[name.removeprefix("rank.")] = written.read()
            os.remove(self.path(name))
        return found

    def together(self, variables, *options):
        running = [subprocess.Popen([self.tool, *options, "--no-build", "--", PYTHON, "-c", SHOW], cwd=self.cwd,
                                    env={**self.env, **variables(rank)}, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE) for rank in range(4)]
        return [(p.communicate(timeout=60), p.returncode) for p in running]

    def test_by_their_variables(self):
        expected = {"torchrun": "mp-trace.my_job_7", "srun": "mp-trace.991", "openmpi": f"mp-trace.{os.getpid()}",
                    "mpich": f"mp-trace.{os.getpid()}"}
        for launcher, variables in self.VARIABLES.items():
            with self.subTest(launcher=launcher):
                before = set(self.directories())
                ends = self.together(variables)
                self.assertTrue(all(code == 0 for _, code in ends), ends)
                [made] = set(self.directories()) - before or [expected[launcher]]
                self.assertEqual(made, expected[launcher])
                self.assertGreaterEqual(len(self.options_in(made)), 4)
                lines = [err for (_, err), _ in ends if err]
                self.assertEqual(len(lines), 1, "one start line, from rank 0")

    def test_a_directory_for_each_rank(self):
        self.together(self.VARIABLES["srun"], "-o", "of-%r-in-%s")
        self.assertEqual(self.directories(), [f"of-{rank}-in-4" for rank in range(4)])

    def test_ranks_that_are_left_out_run_untouched(self):
        ends = self.together(self.VARIABLES["srun"], "--ranks", "1,3")
        shown = [out.decode().strip() for (out, _), _ in ends]
        self.assertEqual([text == "None|None|None" for text in shown], [True, False, True, False])
        self.assertEqual(len(self.options_in("mp-trace.991")), 2)
        ends = self.together(self.VARIABLES["srun"], "-o", "twin", "--mode", "trajectory", "--ranks", "1")
        self.assertNotIn("None|None|None", [out.decode().strip() for (out, _), _ in ends])

    def test_mpirun_for_real_inside_and_outside(self):
        mpirun = shutil.which("mpirun")
        if not mpirun:
            self.skipTest("mpirun is not installed (openmpi-bin)")
        start = [mpirun, "-np", "2", "--oversubscribe", "--allow-run-as-root"]
        show = [PYTHON, self.write("show.py", self.TO_A_FILE.format(rank="OMPI_COMM_WORLD_RANK"))]
        done = subprocess.run([*start, self.tool, "-q", "--no-build", "--", *show], cwd=self.cwd, env=self.env,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        ranks = self.options_by_rank()
        self.assertEqual(sorted(ranks), ["0", "1"])
        self.assertNotEqual(ranks["0"], ranks["1"], "an options file for each")
        [inside] = self.directories()
        self.assertEqual({os.path.dirname(f) for f in ranks.values()}, {self.path(inside)})
        done = self.trace(*start, *show, options=["-o", "outside"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(self.options_by_rank()), ["0", "1"])
        self.assertEqual(len(self.options_in("outside")), 1, "what mpirun starts uses mpirun's")
        failing = subprocess.run([*start, self.tool, "-q", "--no-build", "--", "/bin/sh", "-c", "exit 3"],
                                 cwd=self.cwd, env=self.env, capture_output=True, timeout=60)
        self.assertEqual(failing.returncode, 3)

    def test_torchrun_for_real_inside_and_outside(self):
        torchrun = os.environ.get("MP_TRACE_TORCHRUN", "")
        if not os.path.exists(torchrun):
            self.skipTest("torchrun is not installed")
        start = [torchrun, "--nnodes", "1", "--nproc-per-node", "2", "--master-port", "0", "--rdzv-backend", "c10d",
                 "--rdzv-endpoint", "localhost:0"]
        self.write("show.py", self.TO_A_FILE.format(rank="RANK"))
        done = subprocess.run([*start, "--no-python", self.tool, "run", "-q", "--no-build", "--", PYTHON, "show.py"],
                              cwd=self.cwd, env=self.env, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        ranks = self.options_by_rank()
        self.assertEqual(sorted(ranks), ["0", "1"])
        self.assertNotEqual(ranks["0"], ranks["1"])
        [inside] = self.directories()
        done = subprocess.run([self.tool, "-o", "outside", "--no-build", "--", *start, "show.py"], cwd=self.cwd,
                              env=self.env, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(self.options_by_rank()), ["0", "1"])
        self.assertEqual(self.directories(), [inside, "outside"])


class Verbs(TraceTest):
    def test_help_shows_examples_first(self):
        for words in (["--help"], ["-h"], ["help"], ["run", "--help"], ["help", "run"]):
            done = self.run_tool(*words)
            self.assertEqual(done.returncode, 0)
            text = done.stdout.decode()
            self.assertLess(text.index("mp-trace -- python train.py"), text.index("--budget"))
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 110)
        done = self.run_tool()
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"mp-trace -- python train.py", done.stderr)

    def test_every_verb_has_its_help(self):
        for verb in ("report", "info", "dump", "doctor", "build-adapter", "version"):
            done = self.run_tool(verb, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(f"Usage: mp-trace {verb}", done.stdout.decode())

    def test_slips_are_named(self):
        for words, status, said in ((["reprot"], 2, "did you mean 'report'?"),
                                    (["rnu", "--", "true"], 125, "did you mean 'run'?"),
                                    (["--verison"], 2, "did you mean '--version'?"),
                                    (["python", "x.py"], 2, "mp-trace -- python"),
                                    (["report", "--jsno", "x", "."], 2, "did you mean '--json'?"),
                                    (["doctor", "--jsn"], 2, "did you mean '--json'?"),
                                    (["build-adapter", "--froce"], 2, "did you mean '--force'?"),
                                    (["info"], 2, "of which run"),
                                    (["dump", "."], 2, "is a directory"),
                                    (["report", "a", "b"], 2, "of which run"),
                                    (["report", "--json", "-", "--text", "."], 2, "standard output"),
                                    (["build-adapter", "--torch", "a", "--python", "b"], 2, "two torches"),
                                    (["build-adapter", "--python", "gone"], 2, "not found"),
                                    (["build-adapter", "--torch", "."], 2, "no libtorch_cpu.so"),
                                    (["help", "infoo"], 2, "did you mean 'info'?")):
            with self.subTest(words=words):
                self.assert_refused(self.run_tool(*words), status, said)

    def test_recordings_that_are_none(self):
        self.write("x.mpt", "no recording")
        for words in (["info", "gone"], ["dump", "x.mpt"], ["info", "x.mpt"], ["report", "gone"]):
            self.assert_refused(self.run_tool(*words), 1)
        done = self.run_tool("report", ".")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"holds no recording", done.stderr)

    def test_version(self):
        for words in (["--version"], ["version"]):
            done = self.run_tool(*words)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith(b"mp-trace "))

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.run_tool("--help", stdout=full).returncode, 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
