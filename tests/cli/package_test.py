"""script/package makes an archive that works in a bare root: the C library, a shell, /proc, and nothing of the build.

    package_test.py PRESET
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PRESET = sys.argv[1]
LIMIT = 60 << 20
C_LIBRARY = re.compile(r"^(libc|libm|libdl|libpthread|librt|ld-linux[-\w]*)\.so\.\d+$")


def libraries_of(program):
    return re.findall(r"(/\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout)


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = os.path.realpath(tempfile.mkdtemp(prefix="mp-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.top, ignore_errors=True)
        made = subprocess.run([os.path.join(ROOT, "script/package"), PRESET], capture_output=True, text=True)
        if made.returncode:
            raise AssertionError(made.stdout + made.stderr)
        cls.archive = os.path.join(ROOT, made.stdout.split(":")[0])
        cls.root = os.path.join(cls.top, "root")
        with tarfile.open(cls.archive) as archive:
            archive.extractall(os.path.join(cls.root, "opt"))
        cls.folder = glob.glob(os.path.join(cls.root, "opt", "mp-trace-*"))[0]

    def elf_files(self):
        for path in glob.glob(os.path.join(self.folder, "**"), recursive=True):
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    if f.read(4) == b"\x7fELF":
                        yield path

    def bare(self, *words):
        """Runs a command of the package in a root that has the C library and a shell."""
        for program in ("/bin/sh", "/bin/echo"):
            for path in (program, *libraries_of(program), *libraries_of(os.path.join(self.folder, "bin/mp-trace"))):
                to = self.root + path
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy(path, to)
        for name in ("proc", "tmp", "dev"):
            os.makedirs(os.path.join(self.root, name), exist_ok=True)
        inner = f"mount --rbind /proc {self.root}/proc && exec chroot {self.root} \"$@\""
        return subprocess.run(["unshare", "-Urm", "sh", "-c", inner, "sh", *words], capture_output=True, text=True,
                              env={"HOME": "/tmp", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, cwd=self.top)

    def test_it_is_small(self):
        self.assertLess(os.path.getsize(self.archive), LIMIT)

    def test_it_needs_the_c_library_alone(self):
        adapters = os.path.join(self.folder, "lib/mp-trace/adapters")
        for path in self.elf_files():
            if path.startswith(adapters):  # these need libtorch, which has a C++ runtime
                continue
            needed = re.findall(r"NEEDED\D+\[(.*?)\]", subprocess.run(["readelf", "-d", path], capture_output=True,
                                                                       text=True).stdout)
            self.assertEqual([name for name in needed if not C_LIBRARY.match(name)], [], path)

    def test_nothing_names_the_build(self):
        for name in ("bin/mp-trace", "lib/mp-trace/libmptrace_preload.so"):
            done = subprocess.run(["readelf", "-d", os.path.join(self.folder, name)], capture_output=True, text=True)
            self.assertNotRegex(done.stdout, "RUNPATH|RPATH")

    def test_it_runs_in_a_bare_root(self):
        if subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode:
            self.skipTest("this machine gives no user namespaces")
        tool = "/opt/" + os.path.basename(self.folder) + "/bin/mp-trace"
        done = self.bare(tool, "version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("adapter sources: /opt/", done.stdout)
        done = self.bare(tool, "-o", "/tmp/run", "--", "/bin/echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
