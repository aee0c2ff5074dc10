"""Which products of cuBLAS round their inputs, and products of vectors, under mp-trace on the fakes.

usage: math_modes_test.py MP_TRACE MATH_MODES FAKES
"""
import functools
import json
import os
import re
import sys
import tempfile
import unittest

import on_fakes
from on_fakes import run

MP_TRACE, PROGRAM, FAKES = (os.path.realpath(path) for path in sys.argv[1:4])
environment = functools.partial(on_fakes.environment, FAKES)
LAYERS = ["default", "tf32 mode", "tf32 mode, GemmEx", "tf32 mode, pedantic", "tensor mode", "pedantic mode",
          "emulated mode", "emulated doubles", "emulated", "emulated, Lt"]
VECTORS = ["vector", "vector, transposed"]


class MathModes(unittest.TestCase):
    def trace(self, policy="tf32:matmul=off", **more):
        """The report, and the records of the layers in the dump: the line of the op, and that of its elements."""
        with tempfile.TemporaryDirectory(prefix="math-modes-") as top:
            alone = run([PROGRAM], environment(**more))
            self.assertEqual((alone.returncode, alone.stderr), (0, b""))
            traced = run([MP_TRACE, "-q", "-o", top, "--", PROGRAM], environment(**more))
            self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (0, alone.stdout, b""))
            report = run([MP_TRACE, "report", top, "--json", "-", "--policy", policy], environment()).stdout
            (name,) = [name for name in os.listdir(top) if name.endswith(".mpt")]
            dump = run([MP_TRACE, "dump", os.path.join(top, name)], environment()).stdout.decode()
        self.results = dict(line.rsplit(" ", 1) for line in alone.stdout.decode().splitlines())
        ops = re.findall(r'^  op layer="([^"]+)" (.*)\n(?:    loc (.*)\n)?', dump, re.M)
        return json.loads(report), {layer: (op, elements) for layer, op, elements in ops}

    def rounding(self, ops):
        return {layer for layer, (op, _) in ops.items() if " tf32=1" in op}

    def test_the_math_mode_rounds_inputs_where_the_compute_type_leaves_it_open(self):
        report, ops = self.trace()
        rounding = {"tf32 mode", "tf32 mode, GemmEx", "tensor mode"}
        self.assertEqual(self.rounding(ops), rounding)
        # The fake does it as well, so the results are others; those of three bf16 values are not.
        for layer in LAYERS:
            self.assertEqual(self.results[layer] == self.results["default"], layer not in rounding, layer)
        (finding,) = [f for f in report["findings"] if f["rule"] == "MPT060"]
        self.assertIn(finding["layer"], rounding)
        self.assertEqual({p["layer"] for p in report["dtype_map"] if p["dtype"] == "fp32 (TF32)"}, rounding)

    def test_the_variable_that_switches_tf32_off_leaves_fp16(self):
        _, ops = self.trace(NVIDIA_TF32_OVERRIDE="0")
        self.assertEqual(self.rounding(ops), {"tensor mode"})

    def test_emulated_products_are_computed_again(self):
        """Their factors are floats."""
        _, ops = self.trace()
        for layer in LAYERS:
            op, elements = ops[layer]
            self.assertRegex(op, r"^\"cublas(Lt)?::matmul\" unknown fp32 .* calls=1 .*\(56\)")
            compared = int(re.search(r"compared=(\d+)", elements).group(1))
            self.assertEqual(compared, 32 * 32, layer)

    def test_vectors_are_products_of_one_row(self):
        report, ops = self.trace()
        for transposed, layer in enumerate(VECTORS):
            with self.subTest(layer=layer):
                depth = (56, 48)[transposed]
                for name, dtype in ((layer, "fp32"), (layer + " in fp16", "fp16")):
                    op, elements = ops[name]
                    self.assertRegex(op, rf'^"cublas::matmul" unknown {dtype} .* calls=1 .*\({depth}\)')
                    # 32 of the elements; those of fp16 have the error of one rounding, so they are the right ones.
                    self.assertIn("compared=32 ", elements)
                    squares = [float.fromhex(re.search(rf"\b{key}=(\S+)", elements).group(1))
                               for key in ("error_squares", "squares")]
                    self.assertLess(squares[0], squares[1] * (2e-7 if dtype == "fp16" else 1e-12), elements)
        self.assertEqual({f["rule"] for f in report["findings"] if f["severity"] in ("error", "warning")}, {"MPT060"})

    def test_getters_that_fail_leave_what_is_not_known(self):
        _, ops = self.trace(MP_FAKE_CUDA="cublasGetMathMode=1")
        self.assertEqual(self.rounding(ops), set())
        # Whether the factors are in memory of the host is not known, so they are not read.
        _, ops = self.trace(MP_FAKE_CUDA="cublasGetPointerMode_v2=1")
        self.assertEqual({layer for layer, (_, elements) in ops.items() if elements}, {"emulated, Lt"})
        self.assertEqual(self.rounding(ops), {"tf32 mode", "tf32 mode, GemmEx", "tensor mode"})


unittest.main(argv=sys.argv[:1] + sys.argv[4:])
