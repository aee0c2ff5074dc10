"""Asks an installed PyTorch what policies/ops.txt says of kernels for fp16 and bf16.

no_half, no_bf16: PyTorch's own database of ops names no such kernel, on CUDA or on the CPU, and the op raises on the
CPU. The database is part of torch.testing; ops that it lacks are not asked.

Usage: half_kernels_test.py PYTHON TABLE      PYTHON has torch 2. Exit status 77: it has none
"""
import os
import sys
import unittest
import warnings

if len(sys.argv) == 3:
    if not os.path.exists(sys.argv[1]):
        print(f"skipped: no {sys.argv[1]}")
        sys.exit(77)
    os.execv(sys.argv[1], [sys.argv[1], "-B", __file__, sys.argv[2]])

try:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ALIASES = {"inverse": "linalg_inv", "det": "linalg_det", "slogdet": "linalg_slogdet"}
SHORT = {"linalg.": "linalg_", "fft.": "fft_", "special.": "special_", "nn.functional.": ""}


def table_name(op):
    name = op.name
    for prefix, short in SHORT.items():
        name = name.replace(prefix, short)
    return name


def refusals(path):
    """The dtypes that each op of the table is said to refuse."""
    found = {}
    with open(path, encoding="utf-8") as table:
        for line in table:
            name, _, traits = line.partition("|")
            words = traits.split()
            if line.startswith("#") or not {"no_half", "no_bf16"} & set(words):
                continue
            name = name.split(":")[0].strip()
            found[ALIASES.get(name, name)] = [torch.bfloat16] + [torch.float16] * ("no_half" in words)
    return found


def raises(op, dtype):
    """Whether the op refuses the first of its samples that has elements in this dtype."""
    def cast(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(cast, value))
        return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
    samples = op.sample_inputs("cpu", torch.float32)
    sample = next(s for s in samples if not isinstance(s.input, torch.Tensor) or s.input.numel())
    try:
        op(cast(sample.input), *map(cast, sample.args), **{k: cast(v) for k, v in sample.kwargs.items()})
    except (RuntimeError, NotImplementedError, ValueError):
        return True
    return False


class HalfKernels(unittest.TestCase):
    def test_the_database_has_no_kernel_either(self):
        said = refusals(sys.argv[1])
        self.assertGreater(len(said), 50)
        asked = set()
        for op in op_db:
            for dtype in said.get(table_name(op), []):
                asked.add(table_name(op))
                with self.subTest(op=op.name, dtype=dtype):
                    for device in ("cpu", "cuda"):
                        self.assertNotIn(dtype, op.supported_dtypes(device), device)
                    self.assertTrue(raises(op, dtype))
        self.assertGreater(len(asked), 50)

    def test_it_can_fail(self):
        relu = next(op for op in op_db if op.name == "nn.functional.relu")
        self.assertFalse(raises(relu, torch.bfloat16))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main(argv=sys.argv[:1])
