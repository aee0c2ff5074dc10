"""What mp-trace reads of calls of NVIDIA's own libraries, which answer without a GPU as far as this needs.

    real_calls_test.py MP_TRACE REAL_CALLS DIRECTORY...   (that may have libcublasLt, libcublas and libnccl)

Exit status 77 where they are not installed.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOL, PROGRAM = (os.path.realpath(path) for path in sys.argv[1:3])
LIBRARIES = {name: next((d for d in sys.argv[3:] if os.path.exists(os.path.join(d, name))), None)
             for name in ("libcublasLt.so.13", "libcublas.so.13", "libnccl.so.2")}
PLACES = ":".join(dict.fromkeys(d for d in LIBRARIES.values() if d))


def run(command, work):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MP_", "NVTX_", "CUDA_", "NCCL_"))}
    return subprocess.run(command, cwd=work, env={**env, "LD_LIBRARY_PATH": PLACES}, capture_output=True, text=True,
                          timeout=300)


class RealLibraries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory(prefix="real-calls-")
        cls.addClassCleanup(cls.work.cleanup)
        cls.plain = run([PROGRAM], cls.work.name)
        cls.traced = run([TOOL, "-q", "-o", "run", "--", PROGRAM], cls.work.name)
        folder = os.path.join(cls.work.name, "run")
        files = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".mpt")]
        cls.dump = run([TOOL, "dump", *files], cls.work.name).stdout

    def products(self):
        """{layer: line of the dump}"""
        found = re.finditer(r'^  op layer="([^"]*)" "cublasLt::matmul" .*$', self.dump, re.M)
        return {match.group(1): match.group(0) for match in found}

    def test_every_call_returns_what_the_library_returns(self):
        self.assertEqual((self.traced.returncode, self.traced.stdout, self.traced.stderr),
                         (self.plain.returncode, self.plain.stdout, self.plain.stderr))
        self.assertEqual(len(self.plain.stdout.splitlines()), 7, self.plain)

    def test_products_are_read_from_the_library_s_descriptors(self):
        products = self.products()
        self.assertEqual(set(products), {f"Layer {i}" for i in range(4)} | {"Layer 4/after"}, self.dump)
        for number, dtype, depth in ((0, "bf16", 64), (1, "fp16", 128), (2, "bf16", 256), (3, "fp32", 512)):
            self.assertRegex(products[f"Layer {number}"], rf" {dtype} first=\d+ calls=1 .* depth=\S+ \({depth}\)")
        for field, layer in (("half_sums", 1), ("split_sums", 2), ("tf32", 3)):
            for other in range(4):
                self.assertEqual(f" {field}=1" in products[f"Layer {other}"], other == layer, (field, other))

    def test_nccl_names_its_domain_and_calls_reach_it(self):
        self.assertRegex(self.dump, r'nvtx_domains="NCCL \(of a library\), training"')
        self.assertRegex(self.dump, r'(?m)^  collective "all_reduce" reduction="avg" bf16 .*calls=1 ')


if __name__ == "__main__":
    if None in LIBRARIES.values():
        print("skipped: not installed:", ", ".join(n for n, d in LIBRARIES.items() if not d))
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
