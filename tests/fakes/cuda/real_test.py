"""The fakes against NVIDIA's libraries, as far as those answer without a GPU: names, versions and kinds of symbols, and
the attributes of cuBLASLt's descriptors.

usage: real_test.py FAKES DIRECTORY...   (directories that may have the real libraries)
"""
import ctypes
import os
import re
import subprocess
import sys

FAKES = sys.argv[1]
LIBRARIES = ["libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libnccl.so.2", "libcupti.so.13"]


def symbols(path):
    """name@@version -> letter of nm."""
    command = ["nm", "-D", "--defined-only", "--with-symbol-versions", path]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: kind for kind, name in re.findall(r"^\S+ ([A-Z]) (\S+)$", listed, re.MULTILINE)}


def attributes(path):
    """Prints what descriptors made by this libcublasLt contain: (attribute, status, size, bytes)."""
    lt = ctypes.CDLL(path)
    size = ctypes.c_size_t()
    room = ctypes.create_string_buffer(64)

    def dump(name, get, made, which):
        for attribute in which:
            for width in (4, 8, 64):
                ctypes.memset(room, 0, 64)
                status = get(made, attribute, room, ctypes.c_size_t(width), ctypes.byref(size))
                print(name, attribute, width, status, (size.value, room.raw[:8].hex()) if status == 0 else "")

    made = ctypes.c_void_p()
    lt.cublasLtMatmulDescCreate(ctypes.byref(made), 68, 0)  # COMPUTE_32F, R_32F
    epilogue = ctypes.c_int(4)
    lt.cublasLtMatmulDescSetAttribute(made, 7, ctypes.byref(epilogue), ctypes.c_size_t(4))
    dump("product", lt.cublasLtMatmulDescGetAttribute, made, [0, 1, 2, 3, 4, 7, 8, 17, 18, 19, 20, 26])
    lt.cublasLtMatrixLayoutCreate(ctypes.byref(made), 14, ctypes.c_uint64(48), ctypes.c_uint64(96), ctypes.c_int64(64))
    dump("matrix", lt.cublasLtMatrixLayoutGetAttribute, made, range(7))


def attributes_of(path):
    """The lines of attributes(), from a process of its own, because both libraries have one soname."""
    env = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(path)}
    command = [sys.executable, __file__, path, "--attributes"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split("\n")


def main():
    if sys.argv[2:] == ["--attributes"]:
        return attributes(sys.argv[1])
    faults, compared = [], 0
    for name in LIBRARIES:
        real = next((p for p in (os.path.join(d, name) for d in sys.argv[2:]) if os.path.exists(p)), None)
        if not real:
            continue
        compared += 1
        theirs = symbols(real)
        for symbol, kind in symbols(os.path.join(FAKES, name)).items():
            if symbol.startswith(name):
                continue  # the version itself
            if theirs.get(symbol) != kind:
                faults.append(f"{name}: {symbol} is {kind} in the fake, {theirs.get(symbol)} in {real}")
        if name.startswith("libcublasLt"):
            told = [attributes_of(path) for path in (os.path.join(FAKES, name), real)]
            faults += [f"{name}: fake {a!r}, real {b!r}" for a, b in zip(*told) if a != b]
    if compared == 0:
        print("skipped: none of NVIDIA's libraries is installed")
        return 77
    print("\n".join(faults) or f"{compared} libraries agree")
    return 1 if faults else 0


sys.exit(main())
