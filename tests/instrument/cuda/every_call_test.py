"""Every function that mp-trace replaces: the library behind it sees the arguments, and the run what they say.

usage: every_call_test.py MP_TRACE EVERY_CALL LIBRARY FAKES
"""
import functools
import os
import re
import subprocess
import sys
import tempfile
import unittest

import on_fakes
from on_fakes import run

MP_TRACE, PROGRAM, LIBRARY, FAKES = (os.path.realpath(path) for path in sys.argv[1:5])
environment = functools.partial(on_fakes.environment, FAKES, MP_FAKE_CUDA_CALLS="only")
# What the getters of the fake tell of every communicator.
RANKS, RANK = 4, 2
FP32, FP16, BF16 = 2, 4, 5  # DType
DTYPES = {0: FP32, 2: FP16, 14: BF16}  # of cudaDataType
LETTERS = {"S": FP32, "H": FP16, "T": BF16}
COMPUTE_16F, COMPUTE_32F = 64, 68
# The names of the arguments, in the order of cublas_api.h.
EX = "handle ta tb m n k alpha a at lda b bt ldb beta c ct ldc"
PLAIN = "handle ta tb m n k alpha a lda b ldb beta c ldc"
STRIDED = "handle ta tb m n k alpha a lda sa b ldb sb beta c ldc sc batches"
VECTOR = "handle t m n alpha a lda x incx beta y incy"
PRODUCTS = {
    "cublasGemmEx": EX + " compute algorithm",
    "cublasGemmStridedBatchedEx": "handle ta tb m n k alpha a at lda sa b bt ldb sb beta c ct ldc sc batches compute "
                                  "algorithm",
    "cublasGemmBatchedEx": EX + " batches compute algorithm",
    "cublasSgemmEx": EX,
    "cublasSgemm_v2": PLAIN,
    "cublasHgemm": PLAIN,
    "cublasSgemmStridedBatched": STRIDED,
    "cublasHgemmStridedBatched": STRIDED,
    "cublasSgemmBatched": PLAIN + " batches",
    "cublasHgemmBatched": PLAIN + " batches",
}
VECTORS = {"cublasSgemv_v2": VECTOR}
for _types in ("S", "HSH", "HSS", "TST", "TSS"):
    VECTORS[f"cublas{_types}gemvBatched"] = VECTOR + " batches"
    VECTORS[f"cublas{_types}gemvStridedBatched"] = "handle t m n alpha a lda sa x incx sx beta y incy sy batches"
MOVES = {  # op, reduction; the arguments; what is sent and received, in counts of the call
    "ncclAllReduce": ("all_reduce", "min", "send receive count type op comm stream", 1, 1),
    "ncclReduceScatter": ("reduce_scatter", "min", "send receive count type op comm stream", RANKS, 1),
    "ncclReduce": ("reduce", "min", "send receive count type op root comm stream", 1, 0),  # the root is another rank
    "ncclAllGather": ("all_gather", "", "send receive count type comm stream", 1, RANKS),
    "ncclBroadcast": ("broadcast", "", "send receive count type root comm stream", 0, 1),
    "ncclBcast": ("broadcast", "", "buffer count type root comm stream", 0, 1),
    "ncclAlltoAll": ("all_to_all", "", "send receive count type comm stream", RANKS, RANKS),
    "ncclGather": ("gather", "", "send receive count type root comm stream", 1, 0),
    "ncclScatter": ("scatter", "", "send receive count type root comm stream", 0, 1),
    "ncclSend": ("send", "", "send count type peer comm stream", 1, 0),
    "ncclRecv": ("recv", "", "receive count type peer comm stream", 0, 1),
}


def matrix(dtype, rows, columns, leading, batches=1, stride=0):
    return [dtype, rows, columns, leading, batches, stride, 0]


def product(op, depth, result, inputs, half=0, compute=None, parts=1):
    """`compute` is that of the name unless the call says it. Nothing is split, added or scaled."""
    compute = compute or (COMPUTE_16F if half else COMPUTE_32F)
    return [op, depth, half, 0, 0, *result, len(inputs), *(number for m in inputs for number in m),
            compute, parts, 1, 0, 0]


def product_of(name, values):
    """The event of a product of matrices. A is transposed and so is B; beta is not 0, so C is read."""
    v = dict(zip(PRODUCTS[name].split(), values))
    letter = LETTERS["H" if name.startswith("cublasH") else "S"]
    dtypes = [DTYPES[v[key]] if key in v else letter for key in ("at", "bt", "ct")]
    batches = v.get("batches", 1)
    shapes = [(v["k"], v["m"], v["lda"]), (v["n"], v["k"], v["ldb"]), (v["m"], v["n"], v["ldc"])]
    a, b, c = (matrix(dtype, *shape, batches, v.get(stride, 0))
               for dtype, shape, stride in zip(dtypes, shapes, ("sa", "sb", "sc")))
    half = v.get("compute") == COMPUTE_16F or name.startswith("cublasH")
    return product("cublas::matmul", v["k"], c, [a, b, c], int(half), v.get("compute"))


def row_of(name, values):
    """The event of a product of a transposed matrix and a vector, which is one row: y^T = x^T A."""
    v = dict(zip(VECTORS[name].split(), values))
    letters = re.match(r"cublas(S|[HT]S[HTS])gemv", name).group(1)
    read, written = LETTERS[letters[0]], LETTERS[letters[-1]]
    batches = v.get("batches", 1)
    x = matrix(read, 1, v["m"], v["incx"], batches, v.get("sx", 0))
    a = matrix(read, v["m"], v["n"], v["lda"], batches, v.get("sa", 0))
    y = matrix(written, 1, v["n"], v["incy"], batches, v.get("sy", 0))
    return product("cublas::matmul", v["m"], y, [x, a, y])


def longest_group(name):
    """The event of groups: array i has 3 + i + (j * 5) % 7 at j, so the longest sums are those of group 4."""
    def element(argument):
        return 3 + argument + 4 * 5 % 7
    if "Ex" in name:  # the places of the arguments in cublas_api.h
        places, dtypes, half = dict(lda=9, ldb=12, ldc=16, sizes=18), (FP16, BF16, FP32), 1
    else:
        places, dtypes, half = dict(lda=8, ldb=10, ldc=13, sizes=15), (FP32, FP32, FP32), 0
    m, n, k = (element(place) for place in (3, 4, 5))
    lda, ldb, ldc, batches = (element(place) for place in places.values())
    # Of the two operations, those of argument 1 begin with T and those of argument 2 with N.
    shapes = ((k, m, lda), (k, n, ldb), (m, n, ldc))
    a, b, c = (matrix(dtype, *shape, batches) for dtype, shape in zip(dtypes, shapes))
    return product("cublas::matmul", k, c, [a, b, c], half)


def lt_product():
    a, b, c, d = (matrix(BF16, 7, 33, 8), matrix(BF16, 7, 6, 9), matrix(FP32, 33, 6, 34), matrix(FP32, 33, 6, 35))
    return product("cublasLt::matmul", 7, d, [a, b, c], parts=0)  # the program's algorithm is all zeros


def move_of(name, values):
    op, reduction, arguments, sent, received = MOVES[name]
    count = dict(zip(arguments.split(), values))["count"]
    return [op, reduction, BF16, count * sent, count * received, 2, RANKS, RANK, 0, ""]


def event_of(name, values):
    """The event that a call has; None: none."""
    name = name.removesuffix("_64")
    return (product_of(name, values) if name in PRODUCTS else row_of(name, values) if name in VECTORS
            else longest_group(name) if "Grouped" in name else lt_product() if name == "cublasLtMatmul"
            else move_of(name, values) if name in MOVES else None)


class EveryCall(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory(prefix="every-call-")
        self.addCleanup(self.top.cleanup)

    def call(self, how, options=(), **more):
        """name -> (status, arguments), and the events by name; traced as alone, and as the fakes saw them."""
        place = tempfile.mkdtemp(dir=self.top.name)
        alone = run([PROGRAM, how], environment(**more))
        traced = run([MP_TRACE, "-q", *options, "-o", os.path.join(place, "run"), "--", PROGRAM, how],
                     environment(MP_TRACE_EVENTS=os.path.join(place, "events"), **more))
        self.assertEqual((alone.returncode, alone.stderr), (0, b""))
        self.assertEqual((traced.returncode, traced.stdout.decode(), traced.stderr), (0, alone.stdout.decode(), b""))
        calls = {}
        for line in alone.stdout.decode().splitlines():
            name, status, seen, *values = line.split(" ")
            self.assertEqual(seen, "same", line)
            calls[name] = int(status), [None if v == "-" else int(v) for v in values]
        (log,) = [name for name in os.listdir(place) if name.startswith("events.")]
        with open(os.path.join(place, log), encoding="utf-8") as file:
            return calls, self.events([line.rstrip("\n").split("\t") for line in file])

    def events(self, lines):
        places, found, newest = {}, {}, None
        for kind, *fields in lines:
            if kind == "place":
                places[fields[0]] = newest = fields[2]
            if kind == "product":
                found[places[fields[0]]] = fields[1:]
            if kind == "collective":
                found[newest] = fields  # in the range that was opened before it
        return found

    def test_every_symbol_that_is_exported_is_called(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
        exported = set(re.findall(r" T ((?:cublas|nccl)\w+)$", listed.stdout, re.M))
        calls, _ = self.call("small")
        self.assertEqual(set(calls), exported)
        self.assertGreater(len(exported), 60)

    def test_arguments_go_through_and_are_recorded(self):
        for how in ("small", "large"):
            # Large arguments are read and counted, and no device could measure what they describe.
            options = ("--steps", "1000:1001") if how == "large" else ()
            calls, events = self.call(how, options)
            self.assertEqual({status for status, _ in calls.values()}, {0})
            for name, (_, values) in calls.items():
                with self.subTest(how=how, name=name):
                    expected = event_of(name, values)
                    self.assertEqual(events.get(name), expected and [str(field) for field in expected])
                    if how == "large" and (name.endswith("_64") and "Grouped" not in name or name in MOVES):
                        self.assertTrue(any(v and v >= 1 << 33 for v in values), values)

    def test_every_status_goes_through(self):
        calls, _ = self.call("small")
        # 1 to 7 are errors of both libraries; NCCL's 7 is the call that goes on.
        codes = {name: 1 + i % 7 for i, name in enumerate(calls)}
        failed, _ = self.call("small", MP_FAKE_CUDA=",".join(f"{name}={code}" for name, code in codes.items()))
        self.assertEqual({name: status for name, (status, _) in failed.items()}, codes)


unittest.main(argv=sys.argv[:1] + sys.argv[5:])
