"""The program behaves as without mp-trace: status, signals, streams, process, environment.

MP_TRACE names the binary.
"""
import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import unittest

from trace_support import OURS, PYTHON, TraceTest

STATUSES = [0, 1, 2, 3, 7, 42, 63, 64, 77, 99, 100, 124, 125, 126, 127, 128, 129, 200, 254, 255]
SIGNALS = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV,
           signal.SIGPIPE, signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1, signal.SIGBUS, signal.SIGFPE,
           signal.SIGILL, signal.SIGXFSZ]


class Status(TraceTest):
    def test_thirty_four_ends_are_the_same(self):
        cases = [f"exit {status}" for status in STATUSES] + [f"kill -{int(s)} $$; sleep 5" for s in SIGNALS]
        for case in cases:
            bare = subprocess.run(["/bin/sh", "-c", case], cwd=self.cwd, env=self.env, stderr=subprocess.DEVNULL)
            traced = self.trace("/bin/sh", "-c", case, options=["-q"])
            self.assertEqual(traced.returncode, bare.returncode, case)
            self.assertEqual(traced.stderr, b"")

    def test_output_is_the_same_byte_for_byte(self):
        script = "import os,sys; os.write(1, bytes(range(256))*500); os.write(2, b'err\\0\\xff\\n'); sys.exit(9)"
        bare = subprocess.run([PYTHON, "-c", script], cwd=self.cwd, env=self.env, capture_output=True)
        traced = self.trace(PYTHON, "-c", script)
        self.assertEqual(traced.returncode, 9)
        self.assertEqual(traced.stdout, bare.stdout)
        self.assertEqual(self.without_ours(traced.stderr), bare.stderr)
        self.assertEqual(traced.stderr.count(OURS), 1, "the start line, and no other")
        self.assertEqual(self.trace(PYTHON, "-c", script, options=["-q"]).stderr, bare.stderr)

    def test_process_number_is_kept(self):
        child = subprocess.Popen([self.tool, "-q", "--no-build", "--", "/bin/sh", "-c", "echo $$ $PPID"],
                                 cwd=self.cwd, env=self.env, stdout=subprocess.PIPE)
        out = child.communicate(timeout=60)[0]
        self.assertEqual(out.split(), [str(child.pid).encode(), str(os.getpid()).encode()])

    def test_standard_input_is_the_programs(self):
        done = self.run_tool("-q", "--", "cat", stdin=None, input=b"a\0b\n" * 100000)
        self.assertEqual(done.stdout, b"a\0b\n" * 100000)

    def test_signal_dispositions_and_masks_are_handed_on(self):
        script = "import re; print(re.findall(r'Sig(?:Blk|Ign|Cgt):\\s*\\w+', open('/proc/self/status').read()))"

        def odd():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2])

        for prepare in (None, odd):
            options = dict(cwd=self.cwd, env=self.env, capture_output=True, preexec_fn=prepare, restore_signals=False)
            bare = subprocess.run([PYTHON, "-c", script], **options)
            traced = subprocess.run([self.tool, "--no-build", "--", PYTHON, "-c", script], **options)
            self.assertEqual(traced.stdout, bare.stdout)

    def test_descriptors_are_the_same(self):
        script = "import os; print(sorted(f for f in os.listdir('/proc/self/fd')))"
        read, write = os.pipe()
        for closed in ((), (0,), (2,), (0, 2)):
            def close():
                for fd in closed:
                    os.close(fd)
            options = dict(cwd=self.cwd, env=self.env, stdout=subprocess.PIPE, preexec_fn=close, pass_fds=[read])
            bare = subprocess.run([PYTHON, "-c", script], **options)
            traced = subprocess.run([self.tool, "-q", "--no-build", "--", PYTHON, "-c", script], **options)
            self.assertEqual(traced.stdout, bare.stdout, closed)
            self.assertEqual(traced.returncode, bare.returncode)
        os.close(read)
        os.close(write)

    def test_terminal_is_the_programs(self):
        main, other = pty.openpty()
        script = "import os; print(os.isatty(0), os.isatty(1), os.isatty(2), os.getpgrp() == os.tcgetpgrp(0))"

        def take():
            os.setsid()
            fcntl.ioctl(0, 0x540E, 0)  # TIOCSCTTY

        child = subprocess.Popen([self.tool, "-q", "--no-build", "--", PYTHON, "-c", script], cwd=self.cwd,
                                 env=self.env, stdin=other, stdout=other, stderr=other, preexec_fn=take)
        os.close(other)
        text = b""
        while select.select([main], [], [], 30)[0]:
            try:
                chunk = os.read(main, 4096)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
        child.wait(timeout=60)
        os.close(main)
        self.assertEqual(text.split(), [b"True"] * 4)

    def test_a_stderr_that_takes_nothing_stops_nobody(self):
        with open("/dev/full", "wb") as full:
            done = self.trace("echo", "ran", stderr=full)
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"))
        read, write = os.pipe()
        os.close(read)
        done = self.trace("echo", "ran", stderr=write)
        os.close(write)
        self.assertEqual((done.returncode, done.stdout), (0, b"ran\n"))

    def test_arguments_are_handed_on_as_they_are(self):
        words = ["", " ", "a b", "--", "-q", "--mode", "$HOME", "a\nb", "\udcff\udcfe", "ü", "*" * 1000]
        script = "import os,sys; os.write(1, b'\\0'.join(os.fsencode(a) for a in sys.argv[1:]))"
        done = self.trace(PYTHON, "-c", script, *words)
        self.assertEqual(done.stdout.split(b"\0"), [os.fsencode(w) for w in words])
        self.assertEqual(self.run_tool("run", "-q", "--no-build", "echo", "-q", "--", "x").stdout, b"-q -- x\n")

    def test_a_script_without_a_shebang_is_run_by_the_shell(self):
        self.write("plain", "echo $0 $1\nexit 5\n", 0o755)
        done = self.trace("./plain", "word")
        self.assertEqual((done.returncode, done.stdout), (5, b"./plain word\n"))
        env = {"PATH": self.cwd + ":" + self.env["PATH"]}
        self.assertEqual(self.trace("plain", "word", env=env).stdout, self.path("plain").encode() + b" word\n")

    def test_limits_and_umask_are_kept(self):
        command = ["/bin/sh", "-c", "umask; ulimit -a; pwd; echo $0"]
        bare = subprocess.run(command, cwd=self.cwd, env=self.env, capture_output=True)
        self.assertEqual(self.trace(*command).stdout, bare.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
