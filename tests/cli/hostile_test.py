"""Hostile inputs: each ends in a finding or a clear error with the documented exit code. No crash, no
hang, nothing written outside the cache, and a sane file beside the hostile one is still analysed.

Usage: hostile_test.py MP_LINT. Everything is generated into a temporary directory.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

lint = os.path.abspath(sys.argv[1])
DEFECT = """#include <cuda_fp16.h>
__half sum(const __half* x, int n) {
    __half total = __float2half(0.0f);
    for (int i = 0; i < n; ++i) total = __hadd(total, x[i]);
    return total;
}
"""
TIMEOUT = 10  # seconds per unit given to mp-lint; the whole case gets four times that


def write(path, text, mode="w"):
    with open(path, mode, **({} if "b" in mode else {"encoding": "utf-8", "errors": "surrogateescape"})) as f:
        f.write(text)


def database(folder, entries):
    write(os.path.join(folder, "compile_commands.json"), entries if isinstance(entries, str) else json.dumps(entries))


def entry(folder, file, *flags):
    return {"directory": folder, "file": file, "arguments": ["clang++", *flags, "-c", file]}


# --- sources: (name, content) -----------------------------------------------------------------------
def sources():
    yield "truncated_function.cu", DEFECT[: len(DEFECT) // 2]
    yield "truncated_include.cu", '#include <cuda_fp16'
    yield "truncated_string.cu", DEFECT + 'const char* s = "never closed\n'
    yield "truncated_comment.cu", DEFECT + "/* never closed"
    yield "truncated_raw_string.cu", DEFECT + 'const char* s = R"x(never closed'
    yield "truncated_macro.cu", DEFECT + "#define A(x \\\n"
    yield "truncated_if.cu", "#if 1\n" + DEFECT
    yield "empty.cu", ""
    yield "only_newlines.cu", "\n" * 100000
    yield "no_final_newline.cu", DEFECT.rstrip()
    yield "crlf.cu", DEFECT.replace("\n", "\r\n")
    yield "bom.cu", "\ufeff" + DEFECT
    yield "bad_utf8.cu", DEFECT.encode() + b"// \xff\xfe\xc3\x28 \xed\xa0\x80\n"
    yield "bad_utf8_name.cu", b"int \xff\xfe = 1;\n" + DEFECT.encode()
    yield "nul_bytes.cu", DEFECT.encode().replace(b"total", b"to\0tal", 1)
    yield "utf16.cu", DEFECT.encode("utf-16")
    yield "binary.cu", bytes(random.Random(1).randrange(256) for _ in range(20000))
    yield "escape_codes.cu", DEFECT.replace("x[i]);", "x[i]);  // \x1b[2J\x1b]0;owned\x07")
    yield "deep_parentheses.cu", "int f() { return " + "(" * 20000 + "1" + ")" * 20000 + "; }\n" + DEFECT
    yield "deep_braces.cu", "void f() { " + "{" * 20000 + "}" * 20000 + " }\n" + DEFECT
    yield "deep_operators.cu", "int f(int a) { return " + "+".join(["a"] * 30000) + "; }\n" + DEFECT
    yield "deep_ternary.cu", "int f(int a) { return " + "a ? 1 : " * 5000 + "0; }\n" + DEFECT
    yield "deep_calls.cu", ("int g(int);\nint f(int a) { return " + "g(" * 5000 + "a" + ")" * 5000 + "; }\n" +
                            DEFECT)
    yield "deep_else_if.cu", ("int f(int a) {" + "".join(f"if (a == {i}) return {i}; else " for i in range(3000)) +
                              "return 0; }\n" + DEFECT)
    yield "deep_namespaces.cu", "".join(f"namespace n{i} {{" for i in range(2000)) + "}" * 2000 + "\n" + DEFECT
    yield "deep_pointers.cu", "int " + "*" * 20000 + "p;\n" + DEFECT
    yield "deep_lambdas.cu", "auto f() { return " + "[](){ return " * 200 + "1" + "; }" * 200 + "; }\n" + DEFECT
    yield "huge_switch.cu", ("int f(int a) { switch (a) {" +
                             "".join(f"case {i}: return {i};\n" for i in range(50000)) + "} return 0; }\n" + DEFECT)
    yield "huge_line.cu", DEFECT + "// " + "x" * 5_000_000
    yield "huge_array.cu", "float a[] = {" + "1.f," * 200000 + "};\n" + DEFECT
    yield "many_functions.cu", DEFECT + "".join(f"float f{i}(float x) {{ return x * {i}.f; }}\n"
                                                for i in range(20000))
    yield "long_identifier.cu", DEFECT.replace("total", "t" * 100000)
    yield "macro_bomb.cu", ("#define A0 x\n" +
                            "".join(f"#define A{i} A{i-1} A{i-1} A{i-1} A{i-1}\n" for i in range(1, 16)) +
                            "int x;\nint f() { A15 }\n")
    yield "macro_recursion.cu", "#define A B\n#define B A\n" + DEFECT + "int A = 1;\n"
    yield "include_itself.cu", '#include "include_itself.cu"\n' + DEFECT
    yield "template_recursion.cu", ("template <int N> struct S { static int f() { return S<N + 1>::f(); } };\n"
                                    "int g() { return S<0>::f(); }\n" + DEFECT)
    yield "template_explosion.cu", ("template <int A, int B> struct F {\n"
                                    "    static constexpr long v = F<A - 1, B>::v + F<A - 1, B + 1>::v; };\n"
                                    "template <int B> struct F<0, B> { static constexpr long v = B; };\n"
                                    "long x = F<400, 0>::v;\n" + DEFECT)
    yield "constexpr_loop.cu", ("constexpr int f() { int i = 0; while (true) ++i; return i; }\n"
                                "static_assert(f());\n" + DEFECT)
    yield "constexpr_recursion.cu", "constexpr int f(int n) { return f(n + 1); }\nstatic_assert(f(0));\n" + DEFECT
    yield "recursive_functions.cu", (DEFECT + "float a(float); float b(float x) { return a(x); }\n"
                                     "float a(float x) { return b(x); }\n")
    yield "self_reference.cu", DEFECT + "void h() { __half a = a; float b = b + __half2float(a); auto c = &c; }\n"
    yield "missing_headers.cu", '#include "no/such/header.h"\n#include <not/there.hpp>\n' + DEFECT
    yield "include_dev_zero.cu", '#include "/dev/zero"\n' + DEFECT
    yield "include_directory.cu", '#include "/"\n' + DEFECT
    yield "include_fifo.cu", '#include "a_fifo.h"\n' + DEFECT
    yield "error_directives.cu", "#error stop here\n" + DEFECT
    yield "pragma_plugin.cu", '#pragma clang plugin "/bin/sh"\n#pragma comment(lib, "x")\n' + DEFECT
    yield "line_directive.cu", '#line 1 "/etc/passwd"\n' + DEFECT
    yield "line_directive_huge.cu", '#line 2147483647 "x.cu"\n' + DEFECT
    yield "embed_assembly.cu", 'asm(".incbin \\"/etc/passwd\\"");\n' + DEFECT
    yield "not_code.cu", "Dear reader,\n\nthis is a letter, not a program.\n" * 500
    yield "wrong_language.cpp", "fn main() { println!(\"{}\", 1); }\n" * 100
    yield "html.cpp", "<html><script>alert(1)</script></html>\n"
    yield "odd name 'quoted' $(touch owned) ;&.cu", DEFECT
    yield "newline\nname.cu", DEFECT
    yield "vla_and_goto.cu", DEFECT + "int h(int n) { int a[n]; again: if (n--) goto again; return a[0]; }\n"


def run(folder, *options, expect, **more):
    case_limit = 4 * TIMEOUT
    done = subprocess.run([lint, "--isolated", "--cuda", "stubs", "--cache-dir", os.path.join(folder, ".cache"),
                           "--timeout", str(TIMEOUT), *options],
                          cwd=folder, capture_output=True, timeout=case_limit, stdin=subprocess.DEVNULL, **more)
    assert done.returncode >= 0, f"killed by signal {-done.returncode}: {done.stderr[-400:]}"
    assert done.returncode in expect, \
        f"exit {done.returncode}, not {expect}\n{done.stdout[-600:]}\n{done.stderr[-600:]}"
    assert b"\x1b" not in done.stdout, "an escape code of the source reached the terminal"
    if done.returncode == 2:
        assert done.stderr.strip() or done.stdout.strip(), "exit 2 without a word"
    return done


def listing(folder):
    return sorted(os.path.join(d, n) for d, dirs, names in os.walk(folder) for n in names + dirs
                  if ".cache" not in os.path.join(d, n))


def check_source(name, content):
    folder = tempfile.mkdtemp(prefix="mp-hostile-")
    try:
        write(os.path.join(folder, name), content, "wb" if isinstance(content, bytes) else "w")
        write(os.path.join(folder, "sane_beside_it.cu"), DEFECT)
        os.mkfifo(os.path.join(folder, "a_fifo.h"))
        before = listing(folder)
        done = run(folder, name, "sane_beside_it.cu", expect={1})
        assert b"sane_beside_it.cu:4:" in done.stdout, "the sane file beside it was not analysed"
        assert listing(folder) == before, f"files appeared: {set(listing(folder)) - set(before)}"
    finally:
        shutil.rmtree(folder)


# --- situations: functions of a fresh folder --------------------------------------------------------
def fifo_as_source(d):
    os.mkfifo(os.path.join(d, "pipe.cu"))
    run(d, "pipe.cu", expect={2})


def directory_named_like_a_source(d):
    os.mkdir(os.path.join(d, "x.cu"))
    run(d, "x.cu", expect={2})


def symlink_loop(d):
    os.symlink("b.cu", os.path.join(d, "a.cu"))
    os.symlink("a.cu", os.path.join(d, "b.cu"))
    run(d, "a.cu", expect={2})


def directory_symlink_loop(d):
    os.mkdir(os.path.join(d, "src"))
    os.symlink("..", os.path.join(d, "src", "up"))
    write(os.path.join(d, "src", "a.cu"), DEFECT)
    done = run(d, ".", expect={1})
    assert done.stdout.count(b"[MP401") == 1, "the same file was reported through the loop"


def dangling_symlink(d):
    os.symlink("nowhere.cu", os.path.join(d, "a.cu"))
    run(d, "a.cu", expect={2})


def unreadable(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    os.chmod(os.path.join(d, "a.cu"), 0)
    run(d, "a.cu", expect={1, 2})  # root reads it all the same


def device_as_source(d):
    run(d, "/dev/zero", expect={2})


def missing_file(d):
    run(d, "nothing.cu", expect={2})


def empty_directory(d):
    run(d, ".", expect={2})


def plugin_in_command(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    marker = os.path.join(d, "owned")
    write(os.path.join(d, "evil.c"), f'#include <stdlib.h>\n__attribute__((constructor)) void f(void)'
                                     f'{{ system("touch {marker}"); }}\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "evil.so", "evil.c"], cwd=d, check=True)
    so = os.path.join(d, "evil.so")
    database(d, [entry(d, "a.cu", f"-fplugin={so}", "-Xclang", "-load", "-Xclang", so, f"-fpass-plugin={so}",
                       "-Xclang", f"-fplugin={so}")])
    run(d, "a.cu", expect={1})
    assert not os.path.exists(marker), "a plugin of the compile command was loaded"


def outputs_in_command(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    outs = ["x.o", "x.d", "x.json", "x.dia", "x.i", "a.s", "a.bc", "a.o", "mods"]
    database(d, [entry(d, "a.cu", "-o", "x.o", "-MD", "-MF", "x.d", "-ftime-trace=x.json", "-save-temps",
                       "--serialize-diagnostics", "x.dia", "-MJ", "x.json", "-fmodules-cache-path=mods",
                       "-gsplit-dwarf", "-E", "-o", "x.i")])
    run(d, "a.cu", expect={1})
    made = [o for o in outs if os.path.exists(os.path.join(d, o))]
    assert not made, f"the compile command's outputs were written: {made}"


def command_injection(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    command = "clang++ $(touch owned) `touch owned` ; touch owned -c a.cu"
    database(d, [{"directory": d, "file": "a.cu", "command": command}])
    run(d, "a.cu", expect={1, 2})
    assert not os.path.exists(os.path.join(d, "owned")), "a shell ran the compile command"


def response_file_loop(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    write(os.path.join(d, "x.rsp"), "@x.rsp @x.rsp")
    database(d, [entry(d, "a.cu", "@x.rsp", "@missing.rsp", "--options-file", "x.rsp", "@/dev/zero")])
    run(d, "a.cu", expect={1})


def broken_database(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    for text in ["", "{", "[{}]", "null", "[" * 100000, '[{"file": 3}]', "[" + "[],"  * 10 + "1]"]:
        database(d, text)
        run(d, "-p", d, "a.cu", expect={1, 2})


def database_of_missing_files(d):
    database(d, [entry("/nowhere", f"gone{i}.cu") for i in range(50)])
    write(os.path.join(d, "a.cu"), DEFECT)
    run(d, ".", expect={1})


def hostile_configs(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    for text in ["selct = ['MP401']", "select = 3", "= =", "[" * 10000, "a = " + "[" * 5000, "\x00\xff",
                 "[regions]\nguard = ['x']"]:
        write(os.path.join(d, "mp-lint.toml"), text)
        done = subprocess.run([lint, "--no-cache", "--cuda", "stubs", "a.cu"], cwd=d, capture_output=True, timeout=60)
        assert done.returncode == 2 and b"mp-lint.toml" in done.stderr, \
            f"{text[:20]!r}: exit {done.returncode} {done.stderr[:300]}"


def corrupt_cache(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    run(d, "a.cu", expect={1})
    for folder, _, names in os.walk(os.path.join(d, ".cache")):
        for name in names:
            write(os.path.join(folder, name), b"\xff" * 100, "wb")
    run(d, "a.cu", expect={1})


def unwritable_cache(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    done = subprocess.run([lint, "--isolated", "--cuda", "stubs", "--cache-dir", "/proc/no/such", "a.cu"], cwd=d,
                          capture_output=True, timeout=60)
    assert done.returncode == 1, f"exit {done.returncode} {done.stderr}"


def unwritable_output(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    run(d, "--output", "json=/proc/no/such.json", "a.cu", expect={2})


def closed_stdout(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    command = f"'{lint}' --no-cache --isolated --cuda stubs a.cu | true"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=d, capture_output=True, timeout=60)
    assert done.returncode in (0, 1, 2, 128 + signal.SIGPIPE), f"exit {done.returncode}"


def full_disk(d):
    write(os.path.join(d, "a.cu"), DEFECT)
    with open("/dev/full", "w") as full:
        done = subprocess.run([lint, "--no-cache", "--isolated", "--cuda", "stubs", "a.cu"], cwd=d, stdout=full,
                              stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 2 and done.stderr, f"a full disk passed unseen: exit {done.returncode}"


def strict_with_errors(d):
    write(os.path.join(d, "a.cu"), "this does not parse;\n" + DEFECT)
    run(d, "a.cu", expect={1})
    run(d, "--strict", "a.cu", expect={2})


SITUATIONS = [fifo_as_source, directory_named_like_a_source, symlink_loop, directory_symlink_loop,
              dangling_symlink, unreadable, device_as_source, missing_file, empty_directory, plugin_in_command,
              outputs_in_command, command_injection, response_file_loop, broken_database,
              database_of_missing_files, hostile_configs, corrupt_cache, unwritable_cache, unwritable_output,
              closed_stdout, full_disk, strict_with_errors]


def main():
    cases = [(name, lambda n=name, c=content: check_source(n, c)) for name, content in sources()]
    for situation in SITUATIONS:
        def in_folder(s=situation):
            folder = tempfile.mkdtemp(prefix="mp-hostile-")
            try:
                s(folder)
            finally:
                shutil.rmtree(folder)
        cases.append((situation.__name__, in_folder))
    only = sys.argv[2:]
    failed = []
    for name, check in cases:
        if only and name not in only:
            continue
        try:
            check()
        except (AssertionError, subprocess.TimeoutExpired) as e:
            failed.append(name)
            print(f"FAIL {name!r}: {e}")
    print(f"{len(cases)} hostile inputs, {len(failed)} failed")
    return 1 if failed or len(cases) < 60 else 0


sys.exit(main())
