"""SIGKILL at random moments: every file is readable to the last complete step.

    kill_test.py FAKE_HOST CHECK_RECORDING [KILLS]

The host tells each step through a pipe once it is flushed. After the kill the recording must hold at least
every step told, contiguous from 0, and nothing may be wrong with the file but a torn end. A host that does not wait
for its steps can outrun a slow disk: then steps may be missing, and the file must say so.
"""
import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HOST, CHECK = sys.argv[1:3]
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 500
F_SETPIPE_SZ = 1031
seed = int(os.environ.get("MP_TEST_SEED", "20240607"))
random.seed(seed)


def start_up(directory):
    """Seconds until the host has recorded its first step: a sanitizer makes that long."""
    begin = time.monotonic()
    subprocess.run([HOST, directory, "steps=1"], capture_output=True)
    shutil.rmtree(directory)
    os.mkdir(directory)
    return time.monotonic() - begin


def kill_once(directory, flushed, start):
    """Runs the host and kills it; the last step it told (-1: none) and its recording, if there is one."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, F_SETPIPE_SZ, 1 << 20)
    options = ["steps=100000000", f"tensors={random.choice((0, 3, 40, 400))}",
               f"pause_us={random.choice((0, 0, 20, 500))}"]
    if flushed:
        options.append(f"ack={write_end}")
    host = subprocess.Popen([HOST, directory] + options, pass_fds=(write_end,), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    os.close(write_end)
    # From before main() to well into the recording.
    time.sleep(start * 1.5 * random.random() + random.choice((0.001, 0.01, 0.05)) * random.random())
    host.kill()
    assert host.wait() == -9, "the host ended before it was killed"
    told = b""
    while True:
        piece = os.read(read_end, 1 << 20)
        if not piece:
            break
        told = (told + piece)[-(1 << 20):]
    os.close(read_end)
    last = struct.unpack("<I", told[len(told) // 4 * 4 - 4:len(told) // 4 * 4])[0] if len(told) >= 4 else -1
    name = os.path.join(directory, f"host.p{host.pid}.mpt")
    return last, (name if os.path.exists(name) else None)


def check(pairs):
    """Faults of recordings, and how many of them were torn."""
    lines = subprocess.run([CHECK] + [name for _, name in pairs], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    assert len(lines) == len(pairs), "one line for each file"
    faults, torn_files, extra = [], 0, 0
    for (told, name), line in zip(pairs, lines):
        word = line.split()
        if word[0] != "steps":
            faults.append(f"{name}: {line}")
            continue
        first, last, contiguous = int(word[1]), int(word[2]), word[3] == "1"
        lossy, problems, torn = int(word[8]), int(word[10]), int(word[12])
        torn_files += torn
        gaps_allowed = told is None and lossy > 0
        if last >= 0 and (first != 0 or not contiguous) and not gaps_allowed:
            faults.append(f"{name}: steps are missing in the middle: {line}")
        if told is not None and last < told:
            faults.append(f"{name}: step {told} was flushed, the file ends with {last}")
        if told is not None and last > told:
            extra += 1
            if last > told + 1:
                faults.append(f"{name}: step {last} cannot have begun before {told + 1} was told")
        if problems > torn or torn > 1:
            faults.append(f"{name}: more than a torn end: {line}")
    return faults, torn_files, extra


def main():
    directory = tempfile.mkdtemp(prefix="mp-kill-")
    faults, killed, files, torn, extra, steps = [], 0, 0, 0, 0, 0
    begin = time.monotonic()
    start = min(start_up(directory) for _ in range(5))
    try:
        while killed < KILLS:
            pairs = []
            for _ in range(min(50, KILLS - killed)):
                flushed = killed % 5 != 4  # one in five as fast as the queue takes
                told, name = kill_once(directory, flushed, start)
                killed += 1
                if name:
                    pairs.append((told if flushed else None, name))
                    steps += told + 1
                elif told >= 0:
                    faults.append(f"step {told} was flushed, and there is no file")
            if pairs:
                found, broken, ahead = check(pairs)
                faults += found
                torn += broken
                extra += ahead
                files += len(pairs)
            for _, name in pairs:
                os.unlink(name)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{killed} kills (seed {seed}), {files} files, {steps} steps told, {torn} torn ends, {extra} files with one "
          f"step more than told, {len(faults)} faults, {time.monotonic() - begin:.0f} s")
    print("\n".join(faults[:20]))
    assert files > KILLS // 4, "most kills come too early to tell anything"
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
