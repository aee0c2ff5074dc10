#!/usr/bin/env python3
"""Measures what a second run of mp-lint costs on a tree of CUDA units with shared headers.

    script/bench lint-cpp [--units 100] [--mp-lint BINARY] [--rounds 3] [--cuda stubs]

The tree is generated: units, headers that they share, a compile_commands.json. Rows: cold (an empty cache), again
over the unchanged tree, after a comment was added to one unit, after one unit got a function, after a comment was added
to a header, and after a function of the header changed (15 of 100 units include it). Figures: CPU time of the whole
process tree, wall time, share of the cold CPU time. Minimum over interleaved rounds; only ratios of one run mean
anything on a shared machine. Never a test: nothing here fails on a number.
"""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lint_python import ROOT, run

HEADERS = 20
HEADER = """#pragma once
#include <cuda_fp16.h>

template <class T>
__device__ T total{n}(const T* x, int count) {{
    T acc = T(0.f);
    for (int i = 0; i < count; ++i) acc = acc + x[i];
    return acc;
}}
"""
UNIT = """#include "total{a}.cuh"
#include "total{b}.cuh"
#include "total{c}.cuh"

__global__ void kernel{n}(const __half* x, __half* out, int count) {{
    out[0] = total{a}(x, count);
    out[1] = total{b}(x, count);
    __half acc = __float2half(0.f);
    for (int i = 0; i < count; ++i) acc = __hadd(acc, x[i]);
    out[2] = __hadd(acc, __float2half(1e-9f));
}}
"""


class Tree:
    def __init__(self, folder, units):
        self.folder, self.edits = folder, 0
        for n in range(HEADERS):
            self.write(f"include/total{n}.cuh", HEADER.format(n=n))
        for n in range(units):
            used = dict(zip("abc", (n % HEADERS, (n + 1) % HEADERS, (n + 2) % HEADERS)))
            self.write(f"src/unit{n}.cu", UNIT.format(n=n, **used))
        self.write("compile_commands.json", json.dumps([
            {"directory": folder, "file": f"src/unit{n}.cu",
             "arguments": ["nvcc", "-std=c++17", "-arch=sm_80", "-Iinclude", "-c", f"src/unit{n}.cu"]}
            for n in range(units)]))
        for at, _, _ in os.walk(folder):
            os.utime(at, (time.time() - 1000,) * 2)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        # Old enough for its time to be trusted, and another time with each edit.
        self.edits += 1
        os.utime(path, (time.time() - 10**6 + self.edits,) * 2)

    def edit(self, name, change):
        with open(os.path.join(self.folder, name), encoding="utf-8") as f:
            self.write(name, change(f.read()))

    def prepend(self, text, name="src/unit0.cu"):
        self.edit(name, lambda before: text + before)

    def add_function(self):
        self.prepend(f"__device__ float added{self.edits}(float x) {{ return x * 2.0f; }}\n")

    def change_header(self):
        self.edit("include/total0.cuh", lambda text: re.sub(r"T\([0-9]+", f"T({self.edits}", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=100)
    parser.add_argument("--mp-lint", default=os.path.join(ROOT, "build/release/bin/mp-lint"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cuda", default="auto", help="auto, stubs or the path of a toolkit")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tree = Tree(os.path.join(scratch, "tree"), options.units)
        cache = os.path.join(scratch, "cache")
        command = [options.mp_lint, "--isolated", "--exit-zero", "--select", "ALL", "--cuda", options.cuda,
                   "--cache-dir", cache, tree.folder]
        variants = [("cold", lambda: shutil.rmtree(cache, ignore_errors=True)),
                    ("nothing changed", lambda: run(command)),
                    ("a comment in one unit", lambda: tree.prepend("// more\n")),
                    ("a function in one unit", tree.add_function),
                    ("a comment added to a header", lambda: tree.prepend("// more\n", "include/total0.cuh")),
                    ("a function of a header changed", tree.change_header)]
        best = {}
        for _ in range(options.rounds):
            for name, prepare in variants:
                prepare()
                figures = run(command)
                best[name] = tuple(map(min, best.get(name, figures), figures))
        cold = best["cold"][0]
        print(f"{options.units} CUDA units, {HEADERS} headers, minimum of {options.rounds} rounds\n")
        print("| | CPU | wall | memory | of cold |\n|---|---|---|---|---|")
        for name, (cpu, wall, memory) in best.items():
            print(f"| {name} | {cpu:.3f} s | {wall:.3f} s | {memory:.0f} MB | {100 * cpu / cold:.1f} % |")


if __name__ == "__main__":
    main()
