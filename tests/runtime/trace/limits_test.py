"""The recorder under full disks, limits, signals and forks: the host's stdout and status are its own.

    limits_test.py FAKE_HOST CHECK_RECORDING
"""
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

HOST, CHECK = sys.argv[1:3]


class Directory:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="mp-limits-")
        os.chmod(self.path, 0o755)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def host(directory, *options, **how):
    return subprocess.run([HOST, directory, *options], capture_output=True, text=True, timeout=300, **how)


def alone_with(*options, **how):
    """The host by itself, recording nothing."""
    return host("/nonexistent", "off=1", *[o for o in options if o.split("=")[0] in ("steps", "tensors")], **how)


def expect(run, *options):
    """stdout and status are those of a host that records nothing."""
    alone = alone_with(*options)
    assert alone.returncode == 42 and alone.stderr == "", alone
    assert run.returncode == 42, run
    assert run.stdout == alone.stdout, (run.stdout, alone.stdout)


def recording(directory):
    files = glob.glob(directory + "/*.mpt")
    assert len(files) == 1, files
    words = subprocess.run([CHECK, files[0]], capture_output=True, text=True, check=True).stdout.split()
    assert words[0] == "steps", words
    return {"last": int(words[2]), "contiguous": words[3] == "1", "tensors": int(words[4]), "lossy": int(words[8]),
            "problems": int(words[10]), "torn": int(words[12]), "bytes": os.path.getsize(files[0])}


def dropped(run):
    return int(run.stderr.split("dropped ")[1])


def plain():
    with Directory() as d:
        expect(host(d, "steps=200"), "steps=200")
        assert recording(d)["last"] == 199


def file_size_limit():
    """SIGXFSZ would end the host with status 153."""
    for limit in (0, 10, 5000, 20000):
        def set_limit(n=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))

        if alone_with("steps=3000", preexec_fn=set_limit).returncode != 42:
            continue  # ThreadSanitizer itself writes a file
        with Directory() as d:
            run = host(d, "steps=3000", preexec_fn=set_limit)
            expect(run, "steps=3000")
            if limit < 32:
                why = "File too large" if limit == 0 else "No space left"
                assert run.stderr.startswith("mp-trace: ") and why in run.stderr, run
                assert not os.listdir(d), "nothing is left of a file that could not be begun"
            else:
                found = recording(d)
                assert found["contiguous"] and found["problems"] == found["torn"] <= 1, found
                assert found["last"] + 1 + dropped(run) == 3000, (found, run.stderr)


def full_disk():
    with Directory() as d:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", d], capture_output=True).returncode:
            return "not run: no right to mount a tmpfs"
        try:
            run = host(d, "steps=3000")
            expect(run, "steps=3000")
            found = recording(d)
            assert found["contiguous"] and found["last"] > 10 and dropped(run) > 0, (found, run)
            assert found["problems"] == found["torn"] <= 1, found
        finally:
            subprocess.run(["umount", d], check=True)


def unusable_directory():
    with Directory() as d:
        missing = os.path.join(d, "missing")
        os.mkdir(os.path.join(d, "closed"))
        os.chmod(os.path.join(d, "closed"), 0o555)
        open(os.path.join(d, "file"), "w").close()
        drop = {"user": 65534, "group": 65534} if os.getuid() == 0 else {}
        closed, file = os.path.join(d, "closed"), os.path.join(d, "file")
        for place in (missing, closed, file, "/proc", "/dev/full", "", "a" * 5000):
            run = host(place, "steps=50", **drop)
            expect(run, "steps=50")
            assert run.stderr.startswith("mp-trace: ") and run.stderr.count("\n") == 1, (place, run)


def tiny_queue():
    with Directory() as d:
        run = host(d, "steps=3000", "tensors=100", "queue=40000")
        expect(run, "steps=3000", "tensors=100")
        found = recording(d)
        assert dropped(run) > 0 and found["lossy"] > 0, (run, found)
        assert found["problems"] == 0, found


def budget():
    with Directory() as d:
        run = host(d, "steps=3000", "tensors=100", "budget=300000")
        expect(run, "steps=3000", "tensors=100")
        found = recording(d)
        # Steps without ops, then without tensors, then the end of recording: said once each.
        assert found["bytes"] <= 300000 and found["lossy"] == 3 and found["problems"] == 0, found
        assert found["last"] + 1 + dropped(run) == 3000, (found, run.stderr)


def forks():
    """Children share the descriptor and a copy of the queue; nothing of theirs may reach the file."""
    with Directory() as d:
        run = host(d, "steps=300", "forks=300", "forkers=3", "threads=2")
        expect(run, "steps=300")
        found = recording(d)
        assert found["last"] == 299 and found["contiguous"] and found["problems"] == 0, found
        assert dropped(run) == 0


def signals():
    """Ten thousand a second; none may run on our thread, none may cost a record."""
    with Directory() as d:
        run = host(d, "steps=1000", "signals=100", "pause_us=300", "threads=2")
        expect(run, "steps=1000")
        found = recording(d)
        assert found["last"] == 999 and found["contiguous"] and found["problems"] == 0, found
        assert dropped(run) == 0


def descriptors():
    """With few descriptors left the recording goes on with a low one."""
    with Directory() as d:
        run = host(d, "steps=50", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        expect(run, "steps=50")
        assert recording(d)["last"] == 49


def main():
    signal.alarm(600)  # a hang is a failure
    for test in (plain, file_size_limit, full_disk, unusable_directory, tiny_queue, budget, forks, signals,
                 descriptors):
        print(f"{test.__name__}: {test() or 'ok'}", flush=True)


if __name__ == "__main__":
    main()
