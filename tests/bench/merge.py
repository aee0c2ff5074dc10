#!/usr/bin/env python3
"""Measures folding the recordings of a run (tests/bench/merge.cpp) against `zstd -dc` of the same bytes.

    script/bench merge [--ranks 200] [--layers 1000] [--steps 4] [--rounds 3] [--build DIR]

synthetic_run (tests/fakes) writes one recording per rank, each with different values. The comparison is between
the CPU time (user+sys) of `merge_bench DIR 1`, a whole process that folds those files on one thread, and that of
`zstd -dc FILE`, where FILE contains the unpacked payloads of all their frames as one zstd stream of level 1, the level
of the recorder, with zstd's usual checksum. Rates are unpacked bytes over that time; a quarter, a half and all
of the ranks show whether it is linear. Minimum over interleaved rounds; files are in the page cache.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def payload_stream(bench, directory, path):
    """Writes the zstd stream; bytes of its content."""
    with open(path, "wb") as out:
        source = subprocess.Popen([bench, "--payloads", directory], stdout=subprocess.PIPE)
        packer = subprocess.Popen(["zstd", "-1", "-q", "-c"], stdin=subprocess.PIPE, stdout=out)
        size = 0
        while chunk := source.stdout.read(1 << 20):
            size += len(chunk)
            packer.stdin.write(chunk)
        packer.stdin.close()
        if source.wait() or packer.wait():
            sys.exit("the payloads could not be written")
    return size


def cpu_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(bench, directory, stream, rounds):
    """Minimum CPU s of zstd, CPU s and MiB of one thread, wall s and MiB of all cores."""
    best = [float("inf")] * 5
    for _ in range(rounds):
        figures = [cpu_of(["zstd", "-dcq", stream])]
        for threads in ("1", str(os.cpu_count())):
            done = subprocess.run([bench, directory, threads], check=True, capture_output=True, text=True)
            wall, cpu, peak = map(float, done.stdout.split()[3:])
            figures += [cpu if threads == "1" else wall, peak]
        best = list(map(min, best, figures))
    return best


def bench_in(work, bench, synthetic, args):
    every = os.path.join(work, "all")
    subprocess.run([synthetic, every, "--ranks", str(args.ranks), "--layers", str(args.layers),
                    "--steps", str(args.steps)], check=True)
    names = sorted(os.listdir(every))
    stored = sum(os.path.getsize(os.path.join(every, n)) for n in names)
    print(f"{len(names)} recordings x {args.layers} layers x {args.steps} steps, {stored / 1e6:.0f} MB of files\n")
    print("| ranks | unpacked MB | zstd -dc cpu s | fold cpu s | MB/s | of zstd -dc | us a rank | peak MiB "
          f"| {os.cpu_count()} threads: wall s | peak MiB |\n|" + "--:|" * 10)
    for ranks in sorted({max(1, args.ranks // 4), max(1, args.ranks // 2), args.ranks}):
        part = os.path.join(work, str(ranks))
        os.mkdir(part)
        for name in names[:ranks]:
            os.symlink(os.path.join(every, name), os.path.join(part, name))
        stream = os.path.join(work, "payloads.zst")
        size = payload_stream(bench, part, stream)
        packed, folded, peak, wall, wide = measure(bench, part, stream, args.rounds)
        print(f"| {ranks} | {size / 1e6:.0f} | {packed:.3f} | {folded:.3f} | {size / 1e6 / folded:.0f} "
              f"| {packed / folded:.2f} | {1e6 * folded / ranks:.0f} | {peak:.0f} | {wall:.3f} | {wide:.0f} |")
        os.unlink(stream)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=200)
    parser.add_argument("--layers", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"), help="a configured build directory")
    args = parser.parse_args()
    if not shutil.which("zstd"):
        sys.exit("zstd is missing: script/bootstrap installs it")
    if not os.path.exists(os.path.join(args.build, "CMakeCache.txt")):
        sys.exit(f"{args.build} is not a build directory: run script/setup first, or name one with --build")
    subprocess.run(["cmake", "--build", args.build, "--target", "merge_bench", "synthetic_run"], check=True,
                   stdout=subprocess.DEVNULL)
    programs = [os.path.join(args.build, "bin", name) for name in ("merge_bench", "synthetic_run")]
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, minimum of "
          f"{args.rounds} interleaved rounds")
    with tempfile.TemporaryDirectory(prefix="mp-bench-merge-") as work:
        bench_in(work, *programs, args)


if __name__ == "__main__":
    main()
