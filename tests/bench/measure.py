#!/usr/bin/env python3
"""Builds and runs tests/bench/measure_bench.cpp: the measuring kernels against a read loop, memcpy and a
naive loop. Prints the tables of docs/performance.md.

    script/bench measure [--rounds N] [--mib N] [--build DIR]
"""
import argparse
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mib", type=int, default=1024, help="MiB of bf16; three more of that are needed")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), help="a configured build directory")
    args = parser.parse_args()
    if not os.path.exists(os.path.join(args.build, "CMakeCache.txt")):
        sys.exit(f"{args.build} is not a build directory: run script/setup first, or name one with --build")
    subprocess.run(["cmake", "--build", args.build, "--target", "measure_bench"], check=True, stdout=subprocess.DEVNULL)
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores", end=", ", flush=True)
    done = subprocess.run([os.path.join(args.build, "bin/measure_bench"), str(args.rounds), str(args.mib)], check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
