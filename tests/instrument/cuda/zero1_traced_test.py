"""zero1_gpt under mp-trace, on fakes of NVIDIA's libraries: what is recorded and judged, and that nothing changes.

usage: zero1_traced_test.py MP_TRACE ZERO1_GPT FAKES TWO_THREADS FREED_WEIGHTS NAMED_MEMORY FAILING_LIBRARY STATIC_NCCL
                           OWN_KERNELS
MP_LONG=1: every error code of CUPTI, and failures at more points.
"""
import functools
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

import on_fakes
from on_fakes import run

MP_TRACE, PROGRAM, FAKES, TWO_THREADS, FREED_WEIGHTS, NAMED_MEMORY, FAILING, STATIC_NCCL, OWN_KERNELS = (
    os.path.realpath(path) for path in sys.argv[1:10])
environment = functools.partial(on_fakes.environment, FAKES)
STEPS = 6
LONG = os.environ.get("MP_LONG") == "1"
LAYERS = [f"Layer {layer}/{part}" for layer in range(2) for part in ("attention", "mlp")]
# What the library may meet: each call of the driver, of CUPTI and of the getters fails, always or once.
FAULTS = [
    "cuDriverGetVersion=999", "cuCtxGetCurrent=999", "cuCtxGetDevice=201", "cuDeviceGetAttribute=1",
    "cuModuleLoadData=209", "cuModuleGetFunction=500", "cuOccupancyMaxActiveBlocksPerMultiprocessor=1",
    "cuMemAlloc_v2=2", "cuMemHostRegister_v2=712",
    "cuPointerGetAttribute=1", "cuMemGetInfo_v2=999", "cuMemsetD8Async=719",
    "cuMemcpyDtoDAsync_v2=719", "cuLaunchKernel=719", "cuLaunchKernel#7=719",
    "cuEventCreate=2", "cuEventRecord=400", "cuEventRecord#5=400", "cuEventQuery=719", "cuStreamIsCapturing=900",
    "cuCtxGetId=201", "cuStreamGetCtx=400", "cuThreadExchangeStreamCaptureMode=999", "cuEventDestroy_v2=400",
    "cublasGetStream_v2=1", "cublasGetMathMode=1", "cublasGetPointerMode_v2=1",
    "cublasLtMatmulDescGetAttribute=7", "cublasLtMatmulDescGetAttribute#9=7",
    "cublasLtMatrixLayoutGetAttribute=7", "cublasLtMatmulAlgoConfigGetAttribute=7",
    "ncclCommCount=3", "ncclCommUserRank=3", "ncclCommUserRank#7=1", "ncclCommCuDevice=3",
    "cuptiSubscribe=39,cuptiSubscribe_v2=39", "cuptiEnableCallback=7",
]


def run_apart(command, env):
    """Runs in an empty directory. The result, and what is in the directory then."""
    with tempfile.TemporaryDirectory(prefix="zero1-cwd-") as place:
        done = run(command, env, place)
        files = {}
        for name in os.listdir(place):
            with open(os.path.join(place, name), "rb") as file:
                files[name] = file.read()
        return done, files


class Traced(unittest.TestCase):
    alone = {}  # runs without mp-trace
    tool = MP_TRACE

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="zero1-traced-")
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.number = 0

    def run_alone(self, words, faults, more):
        key = (*words, faults, *more.items())
        if key not in self.alone:
            self.alone[key] = run_apart([PROGRAM, *words], environment(MP_FAKE_CUDA=faults, **more))
        return self.alone[key]

    def trace(self, *flags, faults="", our_faults="", policy=None, options=(), **more):
        """Runs the program with mp-trace, compares with a run without it, and returns the report.

        faults: of calls of the program; our_faults: of calls that it does not make.
        """
        self.number += 1
        into = os.path.join(self.top, str(self.number))
        words = ["--steps", str(STEPS), "--save", "weights", *map(str, flags)]
        env = environment(MP_FAKE_CUDA=faults or our_faults, **more)
        alone, files = self.run_alone(words, faults, more)
        traced, traced_files = run_apart([self.tool, "-o", into, *options, "--", PROGRAM, *words], env)
        self.assertEqual(traced.stdout, alone.stdout, f"alone, with status {alone.returncode}: {alone.stderr}")
        self.assertTrue(traced_files == files, "files of the program differ")
        self.assertEqual(list(files), ["weights"] if alone.returncode == 0 else [])
        self.assertEqual(traced.returncode, alone.returncode, traced.stderr.decode())
        self.said = traced.stderr.decode()
        others = [line for line in traced.stderr.splitlines() if not line.startswith(b"mp-trace: ")]
        self.assertEqual(others, alone.stderr.splitlines())
        if alone.returncode != 0:
            return None  # it may have ended before there was anything to record
        page = os.path.join(self.top, f"{self.number}.json")
        policies = ["--policy", policy] if policy else []
        told = run([MP_TRACE, "report", into, "--json", page, *policies], env)
        self.assertEqual(told.returncode, 0, told.stderr.decode())
        with open(page, encoding="utf-8") as file:
            return json.load(file)

    def dumps(self):
        """Of the recordings of the newest run."""
        into = os.path.join(self.top, str(self.number))
        return [run([MP_TRACE, "dump", os.path.join(into, name)], environment()).stdout.decode()
                for name in sorted(os.listdir(into)) if name.endswith(".mpt")]

    def gate(self):
        """The exit status of the gate on the newest run."""
        return run([MP_TRACE, "gate", os.path.join(self.top, str(self.number))], environment()).returncode

    def found(self, report):
        return {f["rule"] for f in report["findings"] if f["severity"] in ("error", "warning")}


class Records(Traced):
    def test_layers_products_and_collectives_of_all_ranks(self):
        ranks = 3
        report = self.trace("--spawn", ranks)
        self.assertEqual(report["run"]["world_size"], ranks)
        self.assertEqual(report["run"]["ranks_seen"], [0, 1, 2])
        self.assertEqual(len(report["steps"]), STEPS)
        self.assertLessEqual(set(LAYERS), {layer["layer"] for layer in report["layers"]})
        # Two products forward and four backward in each half of a layer, and three of the head.
        products = sum(entry["ops"] for entry in report["dtypes"] if entry["dtype"] == "bf16")
        self.assertEqual(products, ranks * STEPS * (2 * 2 * 6 + 3))
        # 29 tensors are scattered and gathered; the loss is in fp32.
        calls = {(c["op"], c["reduction"], c["dtype"]): c["calls"] for c in report["collectives"]}
        self.assertEqual(calls, {("reduce_scatter", "sum", "bf16"): ranks * STEPS * 29,
                                 ("all_gather", "", "bf16"): ranks * STEPS * 29,
                                 ("all_reduce", "sum", "fp32"): ranks * STEPS})

    def test_products_say_how_they_were_asked_for(self):
        ranks = 2
        asked = {}
        for m in self.trace("--spawn", ranks)["matmuls"]:
            if m["layer"] == "Layer 1/mlp" and m["phase"] == "forward":
                asked[m["k"]] = (m["op"], m["a"], m["b"], m["result"], m["how"], m["calls"], m["m"], m["n"])
        # The two products differ in nothing but their shapes, of which the largest are kept.
        self.assertEqual(asked, {192: ("cublasLt::matmul", "bf16", "bf16", "bf16", "fp32 sums, bias",
                                       2 * ranks * STEPS, 192, 96)})
        split = {m["how"] for m in self.trace("--split-k", "--half-accumulator", "--precision", "fp16")["matmuls"]}
        self.assertEqual(split, {"fp16 sums, 4 parts added in the result", "fp32 sums",
                                 "fp16 sums, 4 parts added in the result, bias"})

    def test_products_and_collectives_have_their_sizes(self):
        channels, vocabulary, context, layers = 48, 96, 16, 2  # layout.hpp
        per_layer = 12 * channels * channels + 13 * channels
        parameters = (2 * vocabulary + context + 2) * channels + layers * per_layer
        for ranks in (2, 3):
            rows = 12 * context // ranks  # of the batch, on each rank

            def forward(*products):  # of `to` and `of` channels: elements, the longest sum, rows of the first
                return sum(to * rows for to, _ in products), max(of for _, of in products), products[0][0]

            def backward(*products):  # the gradients of the inputs and of the weights
                return (sum(of * rows + to * of for to, of in products), max(rows, *(to for to, _ in products)),
                        products[0][1])

            attention, mlp = ((3 * channels, channels), (channels, channels)), ((4 * channels, channels),
                                                                               (channels, 4 * channels))
            head = ((vocabulary, channels),)
            expected = {("loss", "forward"): forward(*head), ("loss", "backward"): backward(*head)}
            for layer in range(layers):
                for half, products in (("attention", attention), ("mlp", mlp)):
                    expected[f"Layer {layer}/{half}", "forward"] = forward(*products)
                    expected[f"Layer {layer}/{half}", "backward"] = backward(*reversed(products))
            with self.subTest(ranks=ranks):
                self.trace("--spawn", ranks)
                dumps = self.dumps()
                self.assertEqual(len(dumps), ranks)
                for dump in dumps:
                    ops = re.findall(r'^  op layer="([^"]*)" "\w+::matmul" (\w+) bf16 .* elements=(\d+) .* depth=\S+ '
                                     r'\((\d+)\)', dump, re.M)
                    first = dict(((layer, phase), int(rows)) for layer, phase, rows in re.findall(
                        r'^  product "([^"]*)" "\w+::matmul" (\w+) bf16 .*? rows=(\d+) ', dump, re.M))
                    self.assertEqual(len(ops), STEPS * len(expected))
                    self.assertEqual({(layer, phase): (int(elements), int(depth), first[layer, phase])
                                      for layer, phase, elements, depth in ops}, expected)
                    moved = re.findall(r'^  collective "(\w+)" reduction="\w*" (\w+) .* bytes=(\d+) ', dump, re.M)
                    self.assertEqual(len(moved), STEPS * 3)
                    self.assertEqual({(op, dtype): int(size) for op, dtype, size in moved},
                                     {("reduce_scatter", "bf16"): 2 * parameters,
                                      ("all_gather", "bf16"): 2 * parameters // ranks, ("all_reduce", "fp32"): 8})

    def test_the_dtype_map_has_weights_masters_layers_and_collectives(self):
        types = {}
        for place in self.trace("--spawn", 2)["dtype_map"]:
            types.setdefault(place["role"], {}).setdefault(place["dtype"], set()).add(place["layer"])
        self.assertEqual(set(types), {"parameter", "optimizer_state", "activation", "collective"})
        self.assertEqual(set(types["optimizer_state"]), {"fp32"})
        self.assertEqual(set(types["parameter"]), {"bf16"})
        self.assertLessEqual(set(LAYERS), types["activation"]["bf16"])
        self.assertEqual(types["collective"], {"bf16": {"reduce_scatter", "all_gather"}, "fp32": {"all_reduce"}})

    def test_kernels_are_counted_by_their_names(self):
        report = self.trace()
        names = [note["text"] for note in report["notes"] if "by its name" in note["text"]]
        (attention,) = [name for name in names if "attention_kernel<__nv_bfloat16>" in name]
        self.assertTrue(attention.endswith(") reads bf16; writes bf16"), attention)

    def test_a_graph_is_captured_as_without_us(self):
        """What it replays is not seen, so nothing is said to be right."""
        report = self.trace("--graph")
        self.assertEqual(report["verdict"]["result"], "inconclusive")
        self.assertEqual(report["verdict"]["inconclusive"],
                         [f"{STEPS} CUDA graphs ran, and what is in them was not seen"])
        self.assertTrue(any(n["text"].endswith("not measured: a CUDA graph recorded them") for n in report["notes"]),
                        report["notes"])


class Verdicts(Traced):
    def test_healthy_runs_are_silent(self):
        for flags in (("--precision", "fp32", "--spawn", 2), ("--precision", "bf16", "--spawn", 3),
                      ("--precision", "fp16", "--spawn", 2), ("--precision", "bf16", "--average", "--spawn", 2),
                      ("--precision", "fp32", "--average", "--spawn", 3), ("--precision", "bf16", "--lr", 1e-4)):
            with self.subTest(flags=flags):
                report = self.trace(*flags)
                self.assertEqual(self.found(report), set())

    def test_the_gate_ends_with_the_status_of_the_verdict(self):
        """0: nothing or warnings alone; 1: an error; 3: not enough was seen."""
        for status, flags in ((0, ("--spawn", 2)), (0, ("--precision", "fp16", "--spawn", 2)),
                              (0, ("--average", "--spawn", 2)), (0, ("--average", "--spawn", 3)),
                              (0, ("--precision", "fp32", "--tf32")),
                              (1, ("--precision", "fp16", "--overflow-at", 3, 1, "--overflow-rank", 1, "--spawn", 2)),
                              (1, ("--no-guard", "--overflow-at", 3, 1)),
                              (1, ("--precision", "fp16", "--half-accumulator", "--spawn", 2)),
                              (1, ("--no-master", "--lr", 1e-4, "--spawn", 2)), (1, ("--split-k",)),
                              (1, ("--count-bytes", "--spawn", 2)), (3, ("--graph",))):
            with self.subTest(flags=flags):
                self.trace(*flags)
                self.assertEqual(self.gate(), status)

    def test_the_first_overflow_has_its_layer_rank_and_step(self):
        for precision, layer, rank, ranks in (("fp16", 1, 1, 2), ("bf16", 0, 0, 2), ("fp32", 1, 0, 2),
                                             ("bf16", 1, 2, 3)):
            with self.subTest(precision=precision, ranks=ranks):
                report = self.trace("--precision", precision, "--spawn", ranks, "--overflow-at", 3, layer,
                                    "--overflow-rank", rank)
                cause = report["findings"][0]
                self.assertEqual((cause["rule"], cause["layer"], cause["rank"], cause["step"], cause["op"]),
                                 ("MPT001", f"Layer {layer}/mlp", rank, 3, "cublasLt::matmul"))
                self.assertEqual(cause["basis"], "exact")

    def test_average_of_three_ranks_has_a_gain(self):
        report = self.trace("--average", "--spawn", 3)
        self.assertIn("MPT073", self.found(report))
        gain = next(f for f in report["findings"] if f["rule"] == "MPT073")
        self.assertIn("0.195", gain["message"])

    def test_a_step_whose_update_is_left_out_is_skipped(self):
        report = self.trace("--precision", "fp16", "--overflow-at", 3, 1)
        self.assertEqual([step["step"] for step in report["steps"] if step["ranks"][0]["skipped"]], [3])
        self.assertNotIn("MPT074", self.found(report))

    def test_an_update_with_lost_gradients(self):
        for precision in ("bf16", "fp32"):
            with self.subTest(precision=precision):
                report = self.trace("--precision", precision, "--no-guard", "--overflow-at", 3, 1)
                finding = next(f for f in report["findings"] if f["rule"] == "MPT074")
                self.assertEqual((finding["severity"], finding["step"]), ("error", 3))
                self.assertEqual(report["findings"][0]["rule"], "MPT001")

    def test_a_collective_past_its_buffers(self):
        report = self.trace("--count-bytes", "--spawn", 2)
        finding = next(f for f in report["findings"] if f["rule"] == "MPT076")
        self.assertEqual((finding["severity"], finding["op"]), ("error", "all_reduce"))

    def test_bf16_on_a_device_without_it(self):
        report = self.trace("--precision", "bf16", MP_FAKE_CUDA_CAPABILITY="75")
        self.assertEqual(self.found(report), {"MPT075"})
        self.assertEqual(self.found(self.trace("--precision", "fp16", MP_FAKE_CUDA_CAPABILITY="75")), set())

    def test_tf32_against_the_policy(self):
        for flags, policy, more, found in ((("--tf32",), "off", {}, {"MPT060"}), (("--tf32",), "on", {}, set()),
                                           ((), "off", {}, set()),
                                           (("--tf32",), "off", {"NVIDIA_TF32_OVERRIDE": "0"}, set())):
            with self.subTest(flags=flags, policy=policy, more=more):
                report = self.trace("--precision", "fp32", *flags, policy=f"tf32:matmul={policy}", **more)
                self.assertEqual(self.found(report), found)
                rounds = bool(flags) and not more
                computed = {p["dtype"] for p in report["dtype_map"] if p["role"] == "activation"}
                self.assertEqual(computed, {"fp32", "fp32 (TF32)"} if rounds else {"fp32"})

    def test_sums_in_half_are_measured(self):
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                report = self.trace("--precision", "fp16", "--half-accumulator", "--spawn", ranks)
                finding = next(f for f in report["findings"] if f["rule"] == "MPT071")
                self.assertIn("sampled", finding["message"])
                self.assertEqual(finding["basis"], "sampled")

    def test_split_sums_are_measured(self):
        report = self.trace("--split-k")
        finding = next(f for f in report["findings"] if f["rule"] == "MPT072")
        self.assertIn("sampled", finding["message"])
        self.assertIn("MPT072", self.found(report))

    def test_a_split_that_no_argument_tells_of_is_measured(self):
        for precision in ("bf16", "fp16"):
            with self.subTest(precision=precision):
                report = self.trace("--precision", precision, MP_FAKE_CUBLAS_SPLIT="8")
                self.assertEqual(self.found(report), {"MPT010"})
                self.assertIn("sampled element", report["findings"][0]["message"])

    def test_a_part_of_each_product_is_computed_again(self):
        report = self.trace("--spawn", 2)
        ops = [op for op in report["ladder"] if op["op"] == "cublasLt::matmul"]
        self.assertGreater(len(ops), 6)
        for op in ops:
            self.assertAlmostEqual(op["introduced_phi"], 1, delta=0.15, msg=op)

    def test_a_tile_that_is_lost_is_found_where_no_sampled_element_shows_it(self):
        # The first product of Layer 0's mlp, of 192 rows: 32 rows of two columns of 192, between the sampled columns.
        for precision in ("bf16", "fp16", "fp32"):
            with self.subTest(precision=precision):
                report = self.trace("--precision", precision, MP_FAKE_CUBLAS_LOSE="3:64:32:4:2")
                self.assertEqual(self.found(report), {"MPT078"})
                finding = report["findings"][0]
                self.assertEqual((finding["severity"], finding["layer"], finding["phase"], finding["step"],
                                  finding["basis"]), ("error", "Layer 0/mlp", "forward", 0, "sampled"))
                self.assertIn("rows 64 to 95 of 192", finding["message"])

    def test_whole_products_have_the_error_of_one_rounding(self):
        for precision in ("bf16", "fp16"):
            with self.subTest(precision=precision):
                products = self.trace("--precision", precision, "--spawn", 2)["products"]
                self.assertGreater(len(products), 8)
                for product in products:
                    self.assertGreaterEqual(product["sketched"], 2 * 4)  # two ranks, steps 0, 1, 2 and 4
                    self.assertAlmostEqual(product["times_rounding"], 1, delta=0.2, msg=product)

    def test_weights_without_a_master_stagnate(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                self.assertIn("MPT040", self.found(self.trace("--no-master", "--lr", 1e-4, "--spawn", ranks)))

    def test_the_report_says_what_each_figure_rests_on(self):
        figures = {f["what"]: (f["basis"], f["count"]) for f in self.trace("--spawn", 2)["figures"]}
        self.assertEqual({basis for basis, _ in figures.values()}, {"exact", "sampled", "inferred"})
        self.assertEqual(figures["which steps were skipped"], ("inferred", STEPS))
        self.assertEqual(figures["error of products"][0], "sampled")
        self.assertEqual(figures["whether a reduction lost values"], ("exact", 2 * STEPS * (29 + 1)))
        told = run([MP_TRACE, "report", "--text", os.path.join(self.top, str(self.number))], environment()).stdout
        self.assertIn("inferred  what other kernels do, from their names alone", told.decode())

    def test_a_product_may_let_cublas_add_in_16_bits(self):
        # The logits alone are of cublasGemmEx, which has no argument for it; zero1_gpt does not forbid it.
        check = next(c for c in self.trace()["checks"] if c["sentence"].startswith("parts of a product's sums"))
        self.assertEqual((check["answer"], check["evidence"]),
                         ("not observed", f"{STEPS} of {STEPS * 27} calls leave it to cuBLAS"))


class Names(Traced):
    def origin(self, how, steps=3):
        into = os.path.join(self.top, how)
        done = run([MP_TRACE, "-q", "-o", into, "--", NAMED_MEMORY, how], environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"done\n", b""))
        report = json.loads(run([MP_TRACE, "report", into, "--json", "-"], environment()).stdout)
        cause = report["findings"][0]
        # The names of the ranges are in payloads of NVTX.
        self.assertEqual((cause["rule"], cause["layer"], cause["step"]), ("MPT001", "Layer 7/attention", 0))
        self.assertEqual(len(report["steps"]), steps)
        return cause["source"]

    def test_the_memory_of_the_first_overflow_has_its_name(self):
        self.assertEqual(self.origin("nvtx"), "'logits'")
        self.assertEqual(self.origin("annotated"), "'scores'")
        self.assertEqual(self.origin("payload"), "'probabilities'")

    def test_memory_without_a_name_is_a_place_in_an_allocation(self):
        self.assertRegex(self.origin("plain"), r"^allocation \d+ of 2048 bytes, byte 512$")
        self.assertRegex(self.origin("pool"), r"^allocation \d+ of 2048 bytes of a pool, byte 512$")
        self.assertEqual(self.origin("freed", steps=1), "memory that was freed since")

    def test_memory_of_several_mappings_is_one(self):
        size = 2 << 20
        self.assertRegex(self.origin("mapped"), rf"^allocation \d+ of {size} bytes, byte {size - 2 * 512}$")
        report = json.loads(run([MP_TRACE, "report", os.path.join(self.top, "mapped"), "--json", "-"],
                                environment()).stdout)
        # The sum goes past the end of the first mapping into the second, and the weight is compared in both.
        self.assertNotIn("MPT076", self.found(report))
        self.assertEqual([c["calls"] for c in report["collectives"]], [3])
        self.assertEqual([p["name"] for p in report["parameters"]], ["weight"])
        self.assertFalse([n for n in report["notes"] if "weights" in n["text"]], report["notes"])


class Reductions(Traced):
    def sums(self, report):
        return {(c["op"], c["reduction"], c["dtype"]): c for c in report["collectives"]}

    def test_sums_of_all_ranks_are_compared_without_communication(self):
        # Two values are added with one rounding. Of three, the sum is rounded after each hop.
        for ranks, low, high in ((2, 0.7, 1.2), (3, 1.0, 1.9)):
            with self.subTest(ranks=ranks):
                report = self.trace("--spawn", ranks)
                sum_ = self.sums(report)["reduce_scatter", "sum", "bf16"]
                self.assertGreater(sum_["sketched_blocks"], 64)
                self.assertTrue(low < sum_["worst_phi"] < high, sum_)
                self.assertNotIn("MPT050", self.found(report))

    def test_the_gain_of_an_average_is_in_the_error(self):
        sums = self.sums(self.trace("--average", "--spawn", 3))
        self.assertGreater(sums["reduce_scatter", "avg", "bf16"]["worst_phi"], 1.5)

    def test_nccl_tells_its_algorithm_through_its_profiler(self):
        for version in ("4", "5"):
            for algorithm, expected in (("Ring", "RING/SIMPLE x 2"), ("Tree", "TREE/SIMPLE x 2")):
                with self.subTest(version=version, algorithm=algorithm):
                    report = self.trace("--spawn", 2, NCCL_ALGO=algorithm, MP_FAKE_NCCL_PROFILER=version)
                    sums = self.sums(report)
                    self.assertEqual(sums["all_reduce", "sum", "fp32"]["algorithms"], expected)
                    self.assertEqual(sums["reduce_scatter", "sum", "bf16"]["algorithms"], "RING/SIMPLE x 2")

    def test_collectives_that_no_wrapper_saw_are_told_by_nccl(self):
        into = os.path.join(self.top, "static")
        done = run([MP_TRACE, "-q", "-o", into, "--", STATIC_NCCL], environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"done\n", b""))
        report = json.loads(run([MP_TRACE, "report", into, "--json", "-"], environment()).stdout)
        # The operator is not told.
        self.assertEqual({(c["op"], c["reduction"], c["dtype"]): (c["calls"], c["algorithms"])
                          for c in report["collectives"]},
                         {("all_reduce", "unknown", "bf16"): (3, "RING/SIMPLE"),
                          ("all_gather", "", "bf16"): (3, "RING/SIMPLE")})
        self.assertEqual(len(report["steps"]), 3)

    def test_another_profiler_of_nccl_keeps_its_place(self):
        report = self.trace("--spawn", 2, NCCL_PROFILER_PLUGIN="/nowhere/libother.so")
        self.assertEqual({c["algorithms"] for c in report["collectives"]}, {""})
        self.assertTrue(any("NCCL_PROFILER_PLUGIN" in note["text"] for note in report["notes"]), report["notes"])


class Times(Traced):
    def test_kernels_have_times_by_layer_only_when_asked(self):
        self.assertEqual(self.trace()["device_times"], [])
        report = self.trace(options=["--device-times"])
        times = {(t["layer"], t["phase"]): t for t in report["device_times"]}
        for layer in LAYERS:
            for phase in ("forward", "backward"):
                self.assertGreater(times[layer, phase]["kernels"], STEPS, (layer, phase))
                self.assertGreater(times[layer, phase]["device_ns"], 0)
        # The kernels that measure are not among them.
        kernels = sum(t["kernels"] for t in report["device_times"])
        by_name = sum(n["count"] for n in report["notes"] if "seen by its name" in n["text"])
        self.assertEqual(kernels, by_name)

    def test_any_error_of_the_activity_api_ends_the_times_alone(self):
        calls = ["cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityEnable#3",
                 "cuptiActivityFlushAll",
                 "cuptiActivityPushExternalCorrelationId", "cuptiActivityPushExternalCorrelationId#9",
                 "cuptiActivityPopExternalCorrelationId", "cuptiActivityGetNextRecord", "buffer",
                 "cuptiActivityGetNumDroppedRecords", "cuptiActivityDisable"]
        for call in calls:
            for code in (1, 8, 39, 999) if LONG else (39,):
                with self.subTest(call=call, code=code):
                    report = self.trace("--steps", 2, our_faults=f"{call}={code}", options=["--device-times"])
                    self.assertLessEqual(set(LAYERS), {layer["layer"] for layer in report["layers"]})
                    if call in ("cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityFlushAll"):
                        self.assertIn(f"gave error {code}", json.dumps(report["notes"]))

    def test_lost_records_are_counted(self):
        report = self.trace(our_faults="buffer=1", options=["--device-times"])
        self.assertIn("kernels whose times CUPTI dropped", json.dumps(report["notes"]))


class Harmless(Traced):
    """The fixture compares output, exit status, messages and files with the run without mp-trace."""

    def test_whatever_fails_the_program_notices_nothing(self):
        for fault in FAULTS:
            with self.subTest(fault=fault):
                told = os.path.join(self.top, "faults")
                self.trace("--steps", 3, "--spawn", 2, "--overflow-at", 1, 0, our_faults=fault,
                           MP_FAKE_CUDA_FAULTS=told)
                with open(told, encoding="utf-8") as file:  # a fault that nothing meets would test nothing
                    self.assertLessEqual(set(file.read().split()), set(re.split(r"(?:#\d+)?=\d+,?", fault)))
                os.remove(told)

    def test_a_refused_subscription_leaves_the_other_sources(self):
        report = self.trace(our_faults="cuptiSubscribe=39,cuptiSubscribe_v2=39",
                            MP_FAKE_CUPTI_HOLDER="CUPTI for Kineto")
        self.assertLessEqual(set(LAYERS), {layer["layer"] for layer in report["layers"]})
        self.assertIn("CUPTI gave error 39", json.dumps(report["notes"]))
        self.assertRegex(self.said, "mp-trace: kernels are not seen: .*39.*CUPTI for Kineto; everything else is\n")

    def test_doctor_tells_of_a_recording_who_held_cupti(self):
        self.trace(our_faults="cuptiSubscribe=39,cuptiSubscribe_v2=39", MP_FAKE_CUPTI_HOLDER="CUPTI for Kineto")
        told = run([MP_TRACE, "doctor", os.path.join(self.top, str(self.number))], environment()).stdout.decode()
        self.assertRegex(told, r"not seen .*39.*CUPTI for Kineto")
        self.assertRegex(told, r"NVTX domains  +the default one alone")

    def test_every_error_code_of_cupti(self):
        # CUptiResult of CUDA 13's cupti_result.h has 1 to 46 and 999.
        for code in (*range(1, 47), 999) if LONG else (1, 39, 46, 999):
            for calls in (("cuptiSubscribe", "cuptiSubscribe_v2"), ("cuptiEnableCallback",)):
                if calls[0] == "cuptiEnableCallback" and code not in ((1, 7, 15, 39, 999) if LONG else (999,)):
                    continue
                with self.subTest(code=code, calls=calls):
                    report = self.trace("--steps", 2, our_faults=",".join(f"{call}={code}" for call in calls))
                    self.assertIn(f"CUPTI gave error {code} ", json.dumps(report["notes"]))
                    self.assertLessEqual(set(LAYERS), {layer["layer"] for layer in report["layers"]})

    def test_errors_of_the_program_stay_its_own(self):
        for fault in ("cudaMalloc#2=2", "cudaLaunchKernel#40=719", "cublasLtMatmul#20=13", "ncclGroupEnd#2=3",
                      "ncclCommInitRank=2"):
            with self.subTest(fault=fault):
                self.trace(faults=fault)

    def test_late_streams(self):
        report = self.trace("--spawn", 2, MP_FAKE_CUDA_LATE="200")
        self.assertEqual(self.found(report), set())

    def test_no_thread_waits_for_one_that_launches(self):
        for works in range(8, 14):
            done = run([MP_TRACE, "-q", "-o", os.path.join(self.top, str(works)), "--", TWO_THREADS],
                       environment(MP_FAKE_CUDA_QUEUE=str(works)))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"done\n", b""), works)

    def test_memory_that_was_freed_is_not_read(self):
        into = os.path.join(self.top, "freed")
        done = run([MP_TRACE, "-q", "-o", into, "--", FREED_WEIGHTS], environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"done\n", b""))
        report = json.loads(run([MP_TRACE, "report", into, "--json", "-"], environment()).stdout)
        texts = [note["text"] for note in report["notes"]]
        self.assertTrue(any("memory was freed" in text for text in texts), texts)
        # Its products are in no range, so of no phase.
        self.assertEqual({(place["role"], place["phase"], place["dtype"]) for place in report["dtype_map"]},
                         {("activation", "unknown", "fp32"), ("parameter", "unknown", "fp32")})

    def test_a_program_without_libraries_is_known_by_its_kernels(self):
        into = os.path.join(self.top, "own")
        done = run([MP_TRACE, "-q", "-o", into, "--", OWN_KERNELS], environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"8\n", b""))
        report = json.loads(run([MP_TRACE, "report", into, "--json", "-"], environment()).stdout)
        self.assertEqual((report["coverage"]["ops"], report["coverage"]["by_name"]), (3, 3))
        gate = run([MP_TRACE, "gate", into], environment())
        self.assertEqual(gate.returncode, 3)
        self.assertIn(b"3 kernels ran without a call of cuBLAS or NCCL", gate.stdout)

    def test_a_set_injection_is_kept(self):
        places = ("NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH")
        report = self.trace(**dict.fromkeys(places, "/nowhere/libother.so"))
        for place in places:
            self.assertIn(f"{place} names another tool's library, which keeps its place", json.dumps(report["notes"]))
        self.assertIn("cublasLt::matmul", json.dumps(report["layers"]))


class Failing(Traced):
    """Each source throws inside of its own part of a hook."""

    SOURCES = {"nvtx": "NVTX", "cublas": "cuBLAS", "nccl": "NCCL", "cupti": "CUPTI", "activity": "the time of kernels"}

    @classmethod
    def setUpClass(cls):
        cls.prefix = tempfile.TemporaryDirectory(prefix="zero1-failing-")
        cls.addClassCleanup(cls.prefix.cleanup)
        binaries, libraries = (os.path.join(cls.prefix.name, name) for name in ("bin", "lib/mp-trace"))
        os.makedirs(binaries)
        os.makedirs(libraries)
        cls.tool = shutil.copy(MP_TRACE, binaries)
        shutil.copy(FAILING, libraries)
        built = os.path.join(os.path.dirname(MP_TRACE), "../lib/mp-trace")
        shutil.copy(os.path.join(built, "libmptrace_preload.so"), libraries)
        shutil.copytree(os.path.join(built, "python"), os.path.join(libraries, "python"))

    def test_a_source_that_fails_stops_alone_and_the_program_notices_nothing(self):
        for source, name in self.SOURCES.items():
            # The times come in a few parts, at the start and at the end.
            points = (1, 2) if source == "activity" else (1, 7, 2, 30)
            for point in points if LONG else points[:2]:
                with self.subTest(source=source, point=point):
                    report = self.trace("--spawn", 2, "--steps", 3, options=["--device-times"],
                                        MP_TRACE_TEST_FAIL=f"{source}:{point}")
                    told = [n["text"] for n in report["notes"] if n["kind"] == "disarmed"]
                    self.assertEqual(told, [f"{name} is not observed any more: on purpose"])
                    seen = {"nvtx": len(report["steps"]) == 3, "nccl": bool(report["collectives"]),
                            "cublas": bool(report["layers"]), "cupti": report["coverage"]["by_name"] > 0}
                    self.assertEqual([s for s, there in seen.items() if not there and s != source], [])


unittest.main(argv=sys.argv[:1] + sys.argv[10:])
