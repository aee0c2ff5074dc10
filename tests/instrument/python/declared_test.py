"""Names below wrappers, scopes that are not modules, declared precisions and checkpoints (declared.py, harness.py)."""
import os

from harness import HERE, IS_2, ScenarioRuns, main

NET = ["Net"] + [f"blocks.{i}{part}" for i in (0, 1) for part in ("", ".linear", ".norm")]
DISCRIMINATOR = ["Discriminator"] + [f"Discriminator.{name}" for name in NET[4:]]
TF32 = "tf32:matmul={},cudnn={},precision={}"


class Declared(ScenarioRuns):
    FILE = "declared.py"

    def values(self, scenario, op):
        return [call[1] if len(call) == 2 else call[1:] for call in self.of(scenario, op)]

    def layers(self, scenario):
        return self.values(scenario, "layer_push")

    def policies(self, scenario):
        return [text for text in self.values(scenario, "policy") if not text.startswith("tf32")]

    def scoped(self, scenario, name):
        """How often a scope was opened."""
        return self.layers(scenario).count(name)

    def test_what_the_program_prints_and_computes_is_the_same(self):
        self.check_same()

    def test_wrappers_have_the_name_of_what_they_wrap(self):
        for scenario, calls in (("parallel", ["Net"] + NET), ("fabric", ["Net"] + NET),
                                ("wrapped_block", NET[:4] + ["blocks.1"] + NET[4:])):
            pushed = [name for name in self.layers(scenario) if not name.startswith("(")]
            self.assertEqual(pushed[:len(calls)], calls, scenario)
        if IS_2:
            pushed = [name for name in self.layers("fsdp") if not name.startswith("(")]
            self.assertEqual(pushed, (["Net"] + NET[:1] + ["blocks.0"] + NET[1:4] + ["blocks.1"] + NET[4:]) * 2)
            self.assertEqual(self.layers("fsdp2_policy"), NET)

    def test_parameters_are_named_as_their_layers(self):
        everywhere = ("parallel", "wrapped_block", "fabric", "two_models", "frozen_teacher")
        for scenario in everywhere + (("fsdp",) if IS_2 else ()):
            layers, names = set(self.layers(scenario)), [call[0] for call in self.values(scenario, "parameter")]
            self.assertTrue(names, scenario)
            for name in names:
                if not name.startswith("Discriminator.blocks.0."):  # never called
                    self.assertIn(name.rpartition(".")[0], layers, scenario)

    def test_what_is_trained_keeps_the_short_names(self):
        pushed = self.layers("frozen_teacher")
        self.assertEqual(pushed[:2], ["Sequential", "Sequential.0"])
        self.assertEqual(pushed[2:-1], ["Net"] + [f"Net.{name}" for name in NET[1:]] + ["Net#2"] + NET[1:])
        self.assertEqual(self.layers("two_models")[:-1], NET + DISCRIMINATOR)

    def test_other_methods_of_a_module_are_their_callers(self):
        inner = ["net"] + [f"net.{name}" for name in NET[1:]]
        self.assertEqual(self.layers("other_method"), NET + ["Outer"] + inner)

    def test_clipping_optimizer_scaler_and_data_are_scopes(self):
        self.assertEqual(self.layers("clipping")[7:9], ["(clipping)", "(optimizer)"])
        self.assertEqual(self.scoped("clipping", "(clipping)"), 3)
        self.assertEqual(self.layers("loader"), (["(data)"] + NET + ["(optimizer)"]) * 2 + ["(data)"])
        if IS_2:
            self.assertEqual(self.scoped("fsdp", "(clipping)"), 4)  # on one rank FSDP's clipping calls torch's
            self.assertEqual(self.layers("compiled_scopes")[7:], [])

    def test_sources_are_told_once_for_each_layer(self):
        told = self.values("parallel", "source")
        self.assertEqual([layer for layer, _ in told], NET)
        self.assertRegex(dict(told)["Net"], r"scenarios\.py:\d+$")
        self.assertRegex(dict(told)["blocks.0.linear"], r"torch/nn/modules/linear\.py:\d+$")

    def test_declared_precisions_are_told_once(self):
        self.assertEqual(self.policies("parallel"), ["ddp"])
        hook = "bf16_compress_hook" if IS_2 else "allreduce_hook"
        self.assertEqual(self.policies("parallel_hook"), [f"ddp:hook={hook}"])
        self.assertEqual(self.policies("autocast"), ["autocast:cpu=bf16"])
        if IS_2:
            self.assertEqual(self.policies("fsdp"), ["fsdp:param=bf16,reduce=fp32,buffer=fp32", "fsdp"])
            self.assertEqual(self.policies("fsdp2_policy"), [
                "fsdp:param=bf16,reduce=bf16",
                "fsdp:param=bf16,reduce=fp32,output=bf16,cast_forward_inputs=off@blocks.0"])

    def told_by(self, scenario, mode):
        """The policies of a scenario alone."""
        if os.path.exists(self.calls_path):
            os.remove(self.calls_path)
        done = self.run_it(os.path.join(HERE, self.FILE), scenario, mode=mode)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Each line is [thread, op, ...] but for the name of the scenario.
        return [call[-1] for call in self.calls() if call[-2] == "policy" and not call[-1].startswith("tf32")]

    def test_a_wrapper_that_is_called_later_is_told_in_watch_mode(self):
        expected = {"late_parallel": ["ddp"]}
        if IS_2:
            expected["late_fsdp"] = ["fsdp:param=bf16,reduce=bf16"]
            expected["late_fsdp2"] = ["fsdp:param=bf16,reduce=bf16", "fsdp:param=bf16,reduce=fp32@blocks.0"]
        for scenario, policies in expected.items():
            for mode in ("watch", "trajectory"):
                with self.subTest(scenario=scenario, mode=mode):
                    self.assertEqual(self.told_by(scenario, mode), policies)

    def test_switches_are_told_after_the_first_step(self):
        told = [text for calls in self.by_scenario for text in self.values(calls, "policy") if text.startswith("tf32")]
        self.assertEqual(told, [TF32.format("on", "off", "mixed") if IS_2 else TF32.format("off", "on", "highest")])

    def test_checkpoints_are_counted_by_dtype(self):
        places = [[role, name, dtype, *counts] for role, name, dtype, *counts in self.values("saved", "place")]
        self.assertEqual(places, [
            # Adam's state is 8 steps of no dimension and 2 x 56 elements, the model's 56 and its mask of 4.
            ["checkpoint", "step_3.pt", "fp16", 9, 60], ["checkpoint", "step_3.pt", "fp32", 24, 120],
            ["checkpoint", "module.pt", "fp32", 9, 60]], "two numbers in memory are a result, not a checkpoint")
        if IS_2:
            self.assertEqual(self.values("saved_distributed", "place"), [["checkpoint", "epoch_1", "fp32", 9, 60]])


if __name__ == "__main__":
    main()
