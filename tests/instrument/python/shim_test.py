"""mp-trace's Python part on a real torch, with the adapter's ops defined in Python (harness.py)."""
import collections
import os
import re
import subprocess
import sys
import unittest

from harness import IS_2, SHIM, STUB, VERSION, ScenarioRuns, Shim, main, without_marks

NAMES = [f"blocks.{i}.{part}.{kind}" for i in (0, 1) for part in ("linear", "norm") for kind in ("weight", "bias")]


class Scenarios(ScenarioRuns):
    FILE = "scenarios.py"

    def steps(self, scenario):
        """after_step calls; checks that each has its before_step, and numbers optimizers from 0."""
        calls = self.of(scenario, "before_step", "after_step")
        self.assertEqual([c[0] for c in calls], ["before_step", "after_step"] * (len(calls) // 2))
        self.assertEqual([c[1] for c in calls[::2]], [c[1] for c in calls[1::2]])
        numbers = list(dict.fromkeys(c[1] for c in calls))  # other scenarios ran before in this process
        return [(numbers.index(c[1]), *c[2:]) for c in calls[1::2]]

    def layers(self, scenario):
        """Names of layers in the order of their calls, without scopes that are not modules."""
        return [c[1] for c in self.of(scenario, "layer_push") if not c[1].startswith("(")]

    def test_what_the_program_prints_and_computes_is_the_same(self):
        self.check_same()

    def test_every_step_counts_once(self):
        plain = (0, False, -1.0)
        for scenario, expected in (("plain", [plain] * 3), ("closure", [plain] * 2), ("lbfgs", [plain] * 2),
                                   ("two_optimizers", [plain, (1, False, -1.0)] * 2),
                                   ("nested", [plain] * 2 + [(1, False, -1.0)] * 2), ("raising_forward", [plain] * 2),
                                   ("zero", [plain] * 2), ("teacher_first", [plain] * 2), ("checkpointed", [plain])):
            self.assertEqual(self.steps(scenario), expected, scenario)
        if IS_2:
            self.assertEqual(self.steps("fused"), [plain] * 2)  # two trainings
            self.assertEqual(self.steps("scaler_off"), [plain] * 5)
            self.assertEqual(self.steps("fsdp2"), [plain] * 2)

    def trainings(self, scenario):
        """The steps from which other trainings count, after the one that the scenario begins itself."""
        begin = [int(re.search(r"from step (\d+) on", c[2])[1]) for c in self.of(scenario, "note")]
        return [step - begin[0] for step in begin[1:]]

    def test_an_optimizer_that_goes_on_alone_counts_the_steps(self):
        plain, other = (0, False, -1.0), (1, False, -1.0)
        self.assertEqual(self.steps("one_goes_on_alone"), [plain] * 6 + [other] * 12 + [plain] * 6)
        self.assertEqual(self.steps("all_weights_after_some"), [plain] * 20 + [other] * 8 + [plain] * 12)
        self.assertEqual(self.steps("one_after_the_other"), [plain] * 24, "the first one rests: at once")
        self.assertEqual(self.steps("one_is_gone"), [plain] * 4)
        self.assertEqual((self.trainings("one_after_the_other"), self.trainings("one_is_gone")), ([12], [2]))

    def test_optimizers_that_alternate_are_one_training(self):
        self.assertEqual([number for number, *_ in self.steps("alternating")], ([0] + [1] * 5) * 6)
        self.assertEqual([number for number, *_ in self.steps("one_for_each")], list(range(12)) * 3)
        self.assertEqual(self.trainings("alternating"), [])
        self.assertEqual([number for number, *_ in self.steps("in_blocks")], ([0] * 20 + [1] * 20) * 3)

    def test_the_first_optimizer_that_comes_back_counts_again(self):
        begin, again = [0] * 12, [0] * 12 + [1] * 12
        self.assertEqual([number for number, *_ in self.steps("in_phases")], begin + begin + again * 2)
        self.assertEqual(self.trainings("in_phases"), [12, 24])
        self.assertRegex(self.of("in_phases", "note")[-1][2], r"^an optimizer that came back .* are those of others$")
        self.assertEqual([number for number, *_ in self.steps("rounds")],
                         [0] * 9 + ([0] * 3 + [1] * 3 + [2] * 3) * 2)

    def test_a_step_that_raises_begins_and_does_not_end(self):
        kinds = [call[0] for call in self.of("raising_step", "before_step", "after_step")]
        self.assertEqual(kinds, ["before_step"] + ["before_step", "after_step"] * 2)

    def test_a_closure_has_run_before_the_step_begins(self):
        for scenario in ("closure", "lbfgs"):
            kinds = [call[0] for call in self.of(scenario, "layer_push", "before_step", "after_step")]
            self.assertEqual(kinds[0], "layer_push", scenario)
            after = kinds.index("after_step")
            self.assertEqual(kinds[after + 1], "layer_push", scenario)
        # LBFGS calls the closure again within its step; the closure's ops do not belong to the optimizer.
        calls = self.of("lbfgs", "layer_push", "layer_pop", "before_step")
        at = [call[0] for call in calls].index("before_step")
        self.assertEqual(calls[:3], [["layer_push", "(optimizer)"], ["layer_pop"], ["layer_push", "Net"]])
        self.assertEqual(calls[at - 1], ["layer_push", "(optimizer)"])
        self.assertEqual(calls[at + 1:at + 3], [["layer_pop"], ["layer_push", "Net"]])

    def test_skipped_steps_are_told_with_the_scale_of_the_step(self):
        self.assertEqual(self.steps("scaler"), [(0, True, 1024.0), (0, False, 512.0), (0, False, 512.0),
                                                (0, True, 1024.0), (0, False, 512.0)])
        self.assertEqual(self.steps("scaler_fused"), [(0, False, 1024.0), (0, True, 1024.0)] + [(0, False, 512.0)] * 3)
        self.assertEqual(self.steps("scaler_sharded"), [(0, False, 64.0)] * 2 + [(0, True, 64.0)] +
                         [(0, False, 32.0)] * 2)
        self.assertEqual(self.steps("scaler_derived"), [(0, False, 16.0)])

    def test_reads_of_ours_are_marked(self):
        kinds = [call[0] for call in self.of("scaler", "internal_begin", "internal_end")]
        self.assertEqual(kinds, ["internal_begin", "internal_end"] * 5)

    def test_unscaling_and_the_update_of_the_scale_are_a_scope(self):
        pushed = [c[1] for c in self.of("scaler", "layer_push") if c[1].startswith("(")]
        step = ["(scaler)", "(clipping)", "(optimizer)", "(scaler)"]
        skipped = ["(scaler)", "(clipping)", "(scaler)"]
        self.assertEqual(pushed, skipped + step * 2 + skipped + step)
        self.assertEqual([c[1] for c in self.of("scaler", "policy")], ["grad_scaler:init=1024"])
        self.assertEqual([c[1] for c in self.of("scaler_derived", "policy")], ["grad_scaler:init=16"])

    def test_scaled_losses_are_told_with_their_roots(self):
        for scenario, scale, count in (("scaler_derived", 16.0, 2), ("scaler_fused", 1024.0, 5)):
            losses = self.of(scenario, "loss")
            self.assertEqual(len(losses), count)
            _, root, loss = losses[0]
            self.assertAlmostEqual(root[2], loss[2] * scale, places=3)

    def test_layers_are_named_from_their_root(self):
        names = ["Net"] + [f"blocks.{i}{part}" for i in (0, 1) for part in ("", ".linear", ".norm")]
        self.assertEqual(self.layers("plain"), names * 3)
        # Checkpointing calls the blocks again in backward, outside the root.
        self.assertEqual(self.layers("checkpointed"), names + names[4:] + names[1:4])
        self.assertEqual(self.layers("outer_later"), ["Block", "linear", "norm"] + names + ["MSELoss"] + names)
        self.assertEqual(self.layers("names_clash"), ["Block", "linear", "norm"] +
                         ["Block#2", "Block#2.linear", "Block#2.norm"])
        # The teacher is called first; when the trained model is called, the teacher is renamed.
        prefixed = ["Net"] + [f"Net.{name}" for name in names[1:]]
        again = ["Net#2"] + names[1:]
        self.assertEqual(self.layers("teacher_first"), names + again + prefixed + again)

    def test_a_weights_parametrization_is_no_model(self):
        self.assertEqual(self.layers("parametrized"), [
            "ParametrizationList", "ParametrizationList.0", "Sequential", "0", "0.parametrizations.weight",
            "0.parametrizations.weight.0", "1"])

    def test_pushes_and_pops_match(self):
        for scenario, calls in self.by_scenario.items():
            depth = 0
            for call in calls:
                depth += {"layer_push": 1, "layer_pop": -1}.get(call[0], 0)
                self.assertGreaterEqual(depth, 0, scenario)
            self.assertEqual(depth, 0, scenario)

    def test_parameters_are_told_once_as_the_program_spells_them(self):
        self.assertEqual([c[1] for c in self.of("plain", "parameter")], NAMES)
        self.assertEqual([c[1] for c in self.of("plain", "buffer")], ["mask"])
        self.assertEqual([c[1] for c in self.of("zero", "parameter")], NAMES)  # without DDP's "module."
        self.assertEqual([c[1] for c in self.of("outer_later", "parameter")], NAMES)
        own = ["linear.weight", "linear.bias", "norm.weight", "norm.bias"]
        names = [c[1] for c in self.of("names_clash", "parameter")]
        self.assertEqual(names[:-1], own + [f"Block#2.{n}" for n in own])
        self.assertRegex(names[-1], r"^optimizer\d+\.group1\.param4$")
        names = [c[1] for c in self.of("teacher_first", "parameter")]
        self.assertEqual(names, NAMES + [f"Net.{n}" for n in NAMES])
        if IS_2:
            self.assertEqual([c[1] for c in self.of("fsdp2", "parameter")], NAMES)

    def test_gradients_of_sharded_parameters_are_told_before_each_step(self):
        self.assertEqual(self.of("plain", "gradient"), [])  # found at the parameter
        calls = [c[:2] for c in self.of("fsdp2", "gradient", "before_step")]
        number = calls[-1][1]
        self.assertEqual(calls, ([["gradient", name] for name in NAMES] + [["before_step", number]]) * 2)

    def test_optimizer_state_is_told_when_it_is_new(self):
        keys = ("step", "exp_avg", "exp_avg_sq")
        told = sorted(c[1] for c in self.of("plain", "state"))
        self.assertEqual(told, sorted(f"{n}.{k}" for n in NAMES for k in keys))
        kinds = [c[0] for c in self.of("plain", "state", "after_step")]
        self.assertEqual(kinds[-2:], ["after_step"] * 2)  # nothing new after the first
        self.assertEqual(len(self.of("zero", "state")), len(NAMES) * 3)

    def test_a_backend_that_runs_the_ops_is_not_noted(self):
        texts = [call[2] for call in self.of("compiled", "note")]
        self.assertEqual([text for text in texts if "compile" in text], [])


class Processes(Shim):
    results = {}

    def untraced(self, *command):
        if command not in self.results:
            self.results[command] = self.script(*command, traced=False)
        return self.results[command]

    def check_same(self, *command, status=0, **more):
        untraced = self.untraced(*command)
        traced = self.script(*command, **more)
        self.assertEqual((traced.stdout, without_marks(traced.stderr), traced.returncode),
                         (untraced.stdout, without_marks(untraced.stderr), untraced.returncode))
        self.assertEqual(traced.returncode, status, traced.stderr)
        return self.calls()

    def test_workers_of_every_kind_are_disarmed_first(self):
        calls = self.check_same("workers")
        by_pid = collections.defaultdict(list)
        for pid, op, *_ in calls:
            by_pid[pid].append(op)
        disarmed = [pid for pid, ops in by_pid.items() if "disarm" in ops]
        self.assertEqual(len(disarmed), 6)
        for pid in disarmed:
            self.assertEqual(by_pid[pid][0], "disarm")
        self.assertEqual(sum("disarm" not in ops for ops in by_pid.values()), 1)  # the program itself

    def test_spawned_ranks_train_and_finish_once(self):
        self.check_children(self.check_same("spawn"), 2)

    def test_forked_ranks_finish_though_they_leave_by_os_exit(self):
        self.check_children(self.check_same("fork"), 1)

    def check_children(self, calls, count):
        trained = {pid for pid, op, *_ in calls if op == "after_step"}
        self.assertEqual(len(trained), count)
        for pid in trained:
            ops = [op for p, op, *_ in calls if p == pid]
            self.assertEqual((ops.count("after_step"), ops.count("finish"), ops[-1]), (2, 1, "finish"))

    def test_finish_comes_after_the_programs_own_handlers(self):
        calls = self.check_same("exits")
        self.assertEqual([c[1] for c in calls if c[1] in ("mark", "finish")], ["mark", "finish"])

    def test_an_error_of_the_program_is_printed_as_ever(self):
        calls = self.check_same("fails", status=1)
        self.assertEqual(calls[-1][1], "finish")

    def test_watch_mode_names_parameters_and_pushes_no_layers(self):
        calls = self.check_same("exits", mode="watch")
        ops = [c[1] for c in calls]
        self.assertNotIn("layer_push", ops)
        self.assertEqual([c[2] for c in calls if c[1] == "parameter"], ["weight", "bias"])
        self.assertEqual(ops.count("after_step"), 2)

    def test_off_tells_nothing_but_the_end(self):
        self.assertEqual([c[1] for c in self.check_same("exits", mode="off")], ["mark", "finish"])

    def test_a_failing_op_is_said_once_and_harms_nobody(self):
        for op, what in (("layer_push", "exits"), ("layer_pop", "exits"), ("parameter", "exits"),
                         ("before_step", "exits"), ("after_step", "exits"), ("finish", "exits"),
                         ("disarm", "workers_fork")):
            untraced = self.untraced(what)
            traced = self.script(what, STUB_FAILS=op)
            self.assertEqual((traced.stdout, traced.returncode), (untraced.stdout, untraced.returncode), op)
            self.assertRegex(traced.stderr, r"\A(mp-trace: internal fault in the Python part [^\n]*\n)+\Z", op)
            self.assertLessEqual(traced.stderr.count("\n"), 2, op)  # once in each process
        quiet = self.script("exits", STUB_FAILS="before_step", quiet="1")
        self.assertEqual((quiet.stdout, quiet.stderr), (self.untraced("exits").stdout, ""))

    def test_the_last_lines_of_a_notebook_reach_the_terminal(self):
        code = ("import os, sys\n"
                "class Stream:\n"
                "    _original_stdstream_copy = os.dup(2)\n"
                "nobody_reads = os.pipe()\n"
                "os.dup2(nobody_reads[1], 2)\n"
                "sys.stderr = Stream()\n"
                "import torch\n"
                "os.close(Stream._original_stdstream_copy)\n"
                "sys.stderr = sys.__stderr__\n")
        self.assertIn("Python part (finish)", self.run_it("-c", code, STUB_FAILS="finish").stderr)

    def test_a_scale_on_a_device_is_followed_exactly(self):
        if not IS_2:
            self.skipTest(f"torch {VERSION} has no GradScaler for the CPU to compare with")
        result = self.script("scale", SHIM, traced=False)
        self.assertEqual((result.stdout, result.returncode), ("wrong []\n", 0), result.stderr)

    def test_counting_a_checkpoint_costs_little(self):
        result = self.script("census", SHIM, traced=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(float(result.stdout.split()[-2]), 10, result.stdout)  # 3.5 % measured; busy machines differ

    def test_eager_switches_compile_off_and_says_so_once(self):
        if not IS_2:
            self.skipTest(f"torch {VERSION} has no torch.compile")
        code = ("import subprocess, sys, torch\n"
                "def backend(graph, inputs): raise SystemError('compiled')\n"
                "f = torch.compile(lambda x: x + 1, backend=backend)\n"
                "print(f(torch.ones(1)))\n"
                "if len(sys.argv) == 1: subprocess.run([sys.executable, __file__, 'child'], check=True)\n")
        path = os.path.join(self.folder, "eager.py")
        with open(path, "w", encoding="utf-8") as out:
            out.write(code)
        result = self.run_it(path, eager="1")
        self.assertEqual(result.stdout, "tensor([2.])\n" * 2, result.stderr)
        self.assertRegex(result.stderr, r"\Amp-trace: torch\.compile is switched off[^\n]*\n\Z")


class Start(Shim):
    """What happens before torch, or without it."""

    def test_the_users_own_sitecustomize_runs_and_is_the_one_that_stays(self):
        code = "import sys; print(sys.path, sys.modules['sitecustomize'].__file__)"
        untraced = self.run_it("-c", code, traced=False, STUB_SAYS="1")
        traced = self.run_it("-c", code, STUB_SAYS="1")
        self.assertEqual((traced.stdout, traced.stderr), (untraced.stdout, untraced.stderr))
        self.assertIn("the user's sitecustomize", traced.stdout)

    def test_errors_in_the_users_sitecustomize_are_reported_as_ever(self):
        with open(os.path.join(self.folder, "sitecustomize.py"), "w", encoding="utf-8") as out:
            out.write("import no_such_module\n")
        code = "import sys; print('sitecustomize' in sys.modules)"
        untraced = self.run_it("-c", code, traced=False, path=[self.folder])
        traced = self.run_it("-c", code, path=[self.folder])
        self.assertEqual((traced.stdout, traced.stderr), (untraced.stdout, untraced.stderr))
        self.assertIn("no_such_module", traced.stderr)

    def test_without_a_sitecustomize_there_is_none(self):
        # Debian brings one; so Python's library once more, without it.
        library = os.path.dirname(os.__file__)
        for name in os.listdir(library):
            if not name.startswith("sitecustomize"):
                os.symlink(os.path.join(library, name), os.path.join(self.folder, name))
        code = ("import sys\n"
                f"sys.path = [p for p in ({SHIM!r},) if {{}}] + [{self.folder!r}, *sys.path[-1:]]\n"
                "import site; site.execsitecustomize(); print(sys.path, 'sitecustomize' in sys.modules)\n")
        untraced = self.run_it("-S", "-c", code.format(False), traced=False)
        traced = self.run_it("-S", "-c", code.format(True))
        self.assertEqual((traced.stdout, traced.stderr), (untraced.stdout, ""))
        self.assertIn("False", traced.stdout)

    def test_children_still_get_it(self):
        inner = "import sys; print('mptrace_shim' in sys.modules, sys.path)"
        outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
        result = self.run_it("-c", outer)
        self.assertTrue(result.stdout.startswith("True "), result.stdout)
        self.assertNotIn(SHIM, result.stdout)

    def test_without_the_variable_it_is_silent_and_gone(self):
        result = self.run_it("-c", "import sys; print([m for m in sys.modules if 'mptrace' in m], sys.path)",
                             traced=False, path=[SHIM, STUB])
        self.assertTrue(result.stdout.startswith("[] "), result.stdout)
        self.assertNotIn(SHIM, result.stdout)
        self.assertEqual(result.stderr, "")

    def test_torch_without_adapter_and_without_preload_is_said(self):
        result = self.run_it("-c", "import torch; print(1)", path=[])
        self.assertEqual(result.stdout, "1\n")
        self.assertEqual(result.stderr, "mp-trace: LD_PRELOAD did not reach this process; the program runs untraced\n")

    def test_another_module_named_torch_is_left_alone(self):
        with open(os.path.join(self.folder, "torch.py"), "w", encoding="utf-8") as out:
            out.write("import sys\n"
                      "if 'ready' not in sys.argv: sys.argv.append('ready'); raise ImportError('not yet')\n")
        code = ("try:\n import torch\nexcept ImportError as e: print(e)\nimport torch; loader = torch.__loader__\n"
                "print(torch.__name__, type(loader).__name__, vars(loader).keys())")
        result = self.run_it("-c", code, path=[], quiet="1")
        self.assertEqual(result.stdout, "not yet\ntorch SourceFileLoader dict_keys(['name', 'path'])\n", result.stderr)


if __name__ == "__main__":
    main()
