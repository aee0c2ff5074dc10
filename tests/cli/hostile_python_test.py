"""Hostile Python inputs: each ends in findings or in a counted state, with the documented exit code. No crash,
no hang, nothing written, nothing executed, and a sane file beside the hostile one is still analysed. Where the
hostile file is valid Python, its defect is found too.

Usage: hostile_python_test.py MP_LINT [NAME...]. Everything is generated into a temporary directory.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

lint = os.path.abspath(sys.argv[1])
TIMEOUT = 20  # seconds given to mp-lint per file; a whole case gets four times that
DEFECT = """import torch


def train(net, batches, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""
CALL = "train(None, (), None)\n"  # in a script that runs another function of its own: else nothing runs this one
RULE = b"MP203"


def nested(header, times, inside, step="    "):
    return "".join(step * i + header + "\n" for i in range(times)) + step * times + inside + "\n"


def notebook(cells, **more):
    return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": c} for c in cells],
                       "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more})


# --- valid Python, oddly written: (name, content); the defect in it must be found ---------------------------
def valid():
    yield "plain.py", DEFECT
    yield "no_final_newline.py", DEFECT.rstrip()
    yield "crlf.py", DEFECT.replace("\n", "\r\n")
    yield "bom.py", "\ufeff" + DEFECT
    yield "tabs.py", DEFECT.replace("    ", "\t")
    yield "two_spaces.py", DEFECT.replace("    ", "  ")
    yield "form_feeds.py", "\f\n" + DEFECT.replace("\ndef", "\n\fdef")
    yield "coding_line.py", "# -*- coding: utf-8 -*-\n" + DEFECT
    yield "shebang.py", "#!/usr/bin/env python3\n" + DEFECT
    yield "only_comments_before.py", "# x\n" * 20000 + DEFECT
    yield "many_blank_lines.py", "\n" * 100000 + DEFECT
    yield "huge_line.py", DEFECT + "# " + "x" * 3_000_000
    yield "huge_literal.py", DEFECT + "DATA = '" + "a" * 1_000_000 + "'\n"
    yield "huge_bytes_literal.py", DEFECT + "DATA = b'" + "\\x00" * 250_000 + "'\n"
    yield "huge_triple_string.py", DEFECT + '"""' + "line\n" * 200_000 + '"""\n'
    yield "huge_list.py", DEFECT + "DATA = [" + "1.0, " * 100_000 + "]\n"
    yield "huge_dict.py", DEFECT + "DATA = {" + "".join(f"'k{i}': {i}, " for i in range(30_000)) + "}\n"
    yield "huge_integer.py", DEFECT + "N = " + "9" * 100_000 + "\n"
    yield "huge_hex.py", DEFECT + "N = 0x" + "f" * 100_000 + "\n"
    yield "huge_exponent.py", DEFECT + "N = 1e999999999\nM = 2 ** 999999999\nK = 1 << 999999999\nJ = 9 ** 9 ** 9\n"
    yield "division_by_zero.py", DEFECT + "N = 1 / 0\nM = 1 // 0\nK = 1 % 0\nJ = 0.0 ** -1\n"
    yield "long_identifier.py", DEFECT.replace("scaler", "s" * 50_000)
    yield "unicode_identifiers.py", DEFECT.replace("scaler", "größe").replace("loss", "損失")
    yield "emoji_and_controls.py", DEFECT + "# \U0001F600 \u202e \u2028 \u0085\n"
    yield "escape_codes.py", DEFECT.replace("1.0)", "1.0)  # \x1b[2J\x1b]0;owned\x07")
    yield "many_functions.py", DEFECT + "".join(f"def f{i}(x):\n    return x * {i}\n" for i in range(5000))
    yield "many_classes.py", DEFECT + "".join(f"class C{i}:\n    a = {i}\n" for i in range(3000))
    yield "many_imports.py", "".join(f"import m{i} as n{i}\n" for i in range(5000)) + DEFECT
    yield "import_everywhere.py", DEFECT + "def f():\n" + "    import torch as t\n" * 3000
    yield "star_imports.py", "from os import *\nfrom torch import *\nfrom nowhere import *\n" + DEFECT
    yield "import_cycle_of_names.py", "import torch as a\nb = a\na2 = b\nb = a2\n" + DEFECT
    yield "shadowed_later.py", DEFECT + "torch_ = torch\n"
    yield "cyclic_inheritance.py", "class A(B): pass\nclass B(C): pass\nclass C(A): pass\n" + DEFECT
    yield "inherits_itself.py", "class A(A):\n    def f(self): return self.f()\n" + DEFECT
    yield "long_inheritance.py", "".join(f"class C{i}(C{i + 1}): pass\n" for i in range(2000)) + DEFECT
    yield "metaclasses.py", "class M(type): pass\nclass A(metaclass=M, k=1): pass\n" + DEFECT
    yield "recursive_functions.py", DEFECT + "def a(x): return b(x)\ndef b(x): return c(x)\ndef c(x): return a(x)\n"
    yield "self_recursion.py", DEFECT + "def f(x, n=f if 0 else None): return f(f(f(x)))\n"
    yield "mutual_lambdas.py", DEFECT + "a = lambda x: b(x)\nb = lambda x: a(x)\n"
    yield "deep_calls.py", DEFECT + "v = " + "f(" * 150 + "1" + ")" * 150 + "\n"
    yield "deep_lists.py", DEFECT + "v = " + "[" * 150 + "]" * 150 + "\n"
    yield "long_attribute_chain.py", DEFECT + "v = a" + ".b" * 20_000 + "\n"
    yield "long_call_chain.py", DEFECT + "v = a" + ".b()" * 5000 + "\n"
    yield "long_sum.py", DEFECT + "v = " + " + ".join(["a"] * 5000) + "\n"
    yield "long_comparison.py", DEFECT + "v = " + " < ".join(["a"] * 3000) + "\n"
    yield "long_boolean.py", DEFECT + "v = " + " and ".join(["a"] * 5000) + "\n"
    yield "long_elif.py", DEFECT + "if a:\n    pass\n" + "".join(f"elif a == {i}:\n    pass\n" for i in range(2000))
    yield "long_with.py", DEFECT + "with " + ", ".join(f"open('{i}')" for i in range(500)) + ":\n    pass\n"
    yield "many_tries.py", DEFECT + "def f():\n" + "    try:\n        g()\n    except E:\n        h()\n" * 1000
    yield "many_branches.py", DEFECT + "def f(x):\n" + "    if x.a:\n        x.b()\n" * 2000
    yield "many_arguments.py", DEFECT + "f(" + ", ".join(f"k{i}={i}" for i in range(5000)) + ")\n"
    yield "many_parameters.py", DEFECT + "def f(" + ", ".join(f"a{i}=None" for i in range(5000)) + "): pass\n"
    yield "many_decorators.py", DEFECT + "@d\n" * 2000 + "def f(): pass\n"
    yield "many_assignments.py", DEFECT + "def f(x):\n" + "    x = x + 1\n" * 10_000
    yield "chained_assignment.py", DEFECT + " = ".join(f"a{i}" for i in range(2000)) + " = 1\n"
    yield "nested_fstrings.py", DEFECT + "s = f\"{f'{x!r:>{width}}'}\" f'{{}}' f'{a=}'\n"
    yield "raw_strings.py", DEFECT + "s = r'\\' + rb'\\x' + Rb'' + bR''\n".replace("r'\\'", "r'\\\\'")
    yield "line_continuations.py", DEFECT + "v = 1 + \\\n" + "1 + \\\n" * 5000 + "1\n"
    yield "semicolons.py", DEFECT + "; ".join(["a = 1"] * 10_000) + "\n"
    yield "walrus.py", DEFECT + "if (n := (m := (k := 1))): pass\n"
    yield "match.py", DEFECT + ("def f(x):\n    match x:\n        case {'a': [1, *_], **r} if r: pass\n"
                               "        case C(a=1) | D(): pass\n        case _: pass\n")
    yield "soft_keywords.py", DEFECT + "match = 1\ncase = match\ntype = case\n_ = type\nprint(match, case)\n"
    yield "async.py", DEFECT + ("async def f():\n    async with a() as b, c():\n        async for d in e:\n"
                               "            await g(d)\n    return [x async for x in y if await x]\n")
    yield "type_hints.py", DEFECT + "def f(x: 'list[dict[str, int]]' = None, *a: int, **k: 'X') -> 'Y': ...\n"
    yield "python312_generics.py", DEFECT + ("type A[T] = list[T]\ndef f[T: int](x: T) -> T: return x\n"
                                             "class C[*Ts, **P]: pass\n")
    yield "except_star.py", DEFECT + "try:\n    f()\nexcept* (A, B) as e:\n    pass\n"
    yield "positional_only.py", DEFECT + "def f(a, /, b, *, c): pass\nlambda a, /, *, b: 0\n"
    yield "nested_functions.py", DEFECT + nested("def f():", 60, "pass")
    yield "nested_classes.py", DEFECT + nested("class C:", 60, "pass")
    yield "nested_loops.py", DEFECT + nested("for i in r:", 19, "f()")
    yield "nested_withs.py", DEFECT + nested("with torch.autocast('cuda'):", 60, "f()")
    yield "nested_tries.py", DEFECT + (nested("try:", 19, "f()") +
                                      "".join("    " * i + "finally:\n" + "    " * (i + 1) + "g()\n"
                                              for i in reversed(range(19))))
    yield "nested_comprehensions.py", DEFECT + "v = " + "[" * 50 + "x" + " for x in y]" * 50 + "\n"
    yield "nested_lambdas.py", DEFECT + "v = " + "lambda x: " * 80 + "x\n"
    yield "nested_conditionals.py", DEFECT + "v = " + "a if b else " * 90 + "c\n"
    yield "unpacking.py", DEFECT + ("a, *b, (c, (d, *e)) = f(*g, **h)\n[a, b] = [*c, *d]\n{**a, 'b': 1}\n"
                                   "for (a, b), c in d: pass\n")
    yield "deletes_and_globals.py", DEFECT + "def f():\n    global torch, train\n    del torch\n    nonlocal_ = 1\n"
    yield "yield_everywhere.py", DEFECT + "def f():\n    x = yield\n    y = yield from (yield)\n    return (yield x)\n"
    yield "contextmanager_without_yield.py", ("import contextlib\n@contextlib.contextmanager\ndef c():\n    return 1\n"
                                               "with c(): pass\n") + DEFECT + CALL
    yield "contextmanager_many_yields.py", ("import contextlib\n@contextlib.contextmanager\ndef c(x):\n"
                                             "    if x:\n        yield 1\n    else:\n        yield 2\n"
                                             "with c(1): pass\n") + DEFECT + CALL
    yield "return_everywhere.py", DEFECT + "def f():\n    return 1\n    return 2\n    while True:\n        return 3\n"
    yield "loop_controls.py", DEFECT + ("while True:\n    while True:\n        break\n    else:\n        continue\n"
                                       "else:\n    pass\n")
    yield "properties.py", DEFECT + ("class A:\n    @property\n    def a(self): return self.a\n"
                                    "    @a.setter\n    def a(self, v): self.a = v\n")
    yield "slots_and_getattr.py", DEFECT + ("class A:\n    __slots__ = ('a',)\n"
                                           "    def __getattr__(self, n): return getattr(self, n)\n"
                                           "a = getattr(A(), 'b')()\n")
    yield "exec_and_eval.py", DEFECT + "exec('raise SystemExit')\neval('open(\"owned\", \"w\")')\n"
    yield "import_hooks.py", "import os; os.system('touch owned')\nopen('owned', 'w').write('x')\n" + DEFECT
    yield "sys_exit_at_import.py", "import sys\nif 0: sys.exit(1)\n" + DEFECT
    yield "paths_like_configs.py", DEFECT + ("import json\nc = json.load(open('/dev/zero.json'))\n"
                                            "f(config='../../../etc/ds_config.json')\n")
    yield "odd name 'quoted' $(touch owned) ;&.py", DEFECT
    yield "newline\nname.py", DEFECT
    yield "-dash.py", DEFECT
    yield "ünïcode.py", DEFECT
    yield "name.with.dots.py", DEFECT
    yield "__init__.py", DEFECT
    yield "torch.py", DEFECT
    yield "notebook.ipynb", notebook([DEFECT])
    yield "notebook_lines.ipynb", notebook([DEFECT.splitlines(keepends=True)])
    yield "notebook_magics.ipynb", notebook(["%%time\n" + DEFECT, "!touch owned\n%run x.py\n?f\n", "%%bash\nls\n"])
    yield "notebook_many_cells.ipynb", notebook([DEFECT] + ["x = 1"] * 5000)
    yield "notebook_bom.ipynb", "\ufeff" + notebook([DEFECT])
    yield "notebook_v3.ipynb", json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": [DEFECT]}]}]})
    yield "notebook_escapes.ipynb", notebook(["s = '\\u00e9\\t\"'  # \U0001F600 é\n" + DEFECT])
    yield "notebook_big_output.ipynb", json.dumps({"cells": [
        {"cell_type": "code", "outputs": [{"data": {"image/png": "A" * 2_000_000}}], "source": DEFECT}]})


# --- not valid Python: nothing is expected of them but an end -----------------------------------------------
def broken():
    noise = random.Random(7)
    yield "empty.py", ""
    yield "only_bom.py", "\ufeff"
    yield "one_byte.py", "\x00"
    yield "only_quote.py", "'"
    yield "only_triple_quote.py", '"""'
    yield "only_at.py", "@"
    yield "only_backslash.py", "\\"
    yield "only_indent.py", "        "
    yield "only_colon.py", ":" * 10_000
    yield "only_dots.py", "." * 100_000
    yield "torch_and_dots.py", "import torch\n" + "." * 10_000
    yield "only_hashes.py", "#" * 100_000
    yield "cr_only.py", DEFECT.replace("\n", "\r")
    yield "mixed_newlines.py", DEFECT.replace("\n", "\r", 3).replace("\n", "\r\n", 2)
    yield "nul_bytes.py", DEFECT.replace("scaler", "sca\0ler", 1)
    yield "all_nul.py", b"\0" * 100_000
    yield "utf16.py", DEFECT.encode("utf-16")
    yield "utf16_no_bom.py", DEFECT.encode("utf-16-le")
    yield "utf32.py", DEFECT.encode("utf-32")
    yield "latin1.py", "# coding: latin-1\n".encode() + b"name = '\xe9\xff'\n" + DEFECT.encode()
    yield "bad_utf8.py", DEFECT.encode() + b"# \xff\xfe\xc3\x28 \xed\xa0\x80\nx = '\xf0\x28'\n\xff\xff = 1\n"
    yield "binary.py", bytes(noise.randrange(256) for _ in range(30_000))
    yield "binary_words.py", bytes(noise.randrange(256) for _ in range(3000)) + b" torch half autocast "
    yield "printable_noise.py", "torch " + "".join(chr(noise.randrange(32, 127)) for _ in range(30_000))
    yield "token_noise.py", "import torch\n" + " ".join(
        noise.choice("def class with as for if else ( ) [ ] { } : = , . lambda yield await torch half @ * ** -> := "
                     "try except finally \n \n    return import from".split(" ")) for _ in range(20_000))
    yield "line_noise.py", "\n".join(noise.sample(DEFECT.splitlines() * 50, 600))
    yield "truncated_function.py", DEFECT[: len(DEFECT) // 2]
    yield "truncated_string.py", DEFECT + "s = 'never closed\n"
    yield "truncated_triple_string.py", DEFECT + 's = """never closed\n' + DEFECT
    yield "truncated_call.py", DEFECT + "f(a, b\n" + DEFECT
    yield "truncated_list.py", DEFECT + "x = [1, 2\n"
    yield "truncated_fstring.py", DEFECT + "s = f'{x'\n"
    yield "truncated_decorator.py", DEFECT + "@d("
    yield "truncated_with.py", DEFECT + "with torch.autocast('cuda'"
    yield "truncated_import.py", "from torch import ("
    yield "every_prefix.py", "\n".join(DEFECT[:i].replace("\n", " ") for i in range(0, len(DEFECT), 7))
    yield "unbalanced_close.py", ")" * 10_000 + DEFECT
    yield "deep_parentheses.py", "import torch\nv = " + "(" * 100_000 + "1" + ")" * 100_000 + "\n" + DEFECT
    yield "deep_open_parentheses.py", "import torch\n" + "(" * 200_000
    yield "deep_brackets.py", "import torch\nv = " + "[" * 50_000 + "]" * 50_000 + "\n"
    yield "deep_braces.py", "import torch\nv = " + "{1: " * 50_000 + "1" + "}" * 50_000 + "\n"
    yield "deep_call_nesting.py", "import torch\nv = " + "torch.f(" * 30_000 + ")" * 30_000 + "\n"
    yield "deep_unary.py", "import torch\nv = " + "-" * 100_000 + "1\n"
    yield "deep_not.py", "import torch\nv = " + "not " * 50_000 + "1\n"
    yield "deep_await.py", "import torch\nv = " + "await " * 50_000 + "x\n"
    yield "deep_lambda.py", "import torch\nv = " + "lambda: " * 50_000 + "1\n"
    yield "deep_subscript.py", "import torch\nv = " + "a[" * 50_000 + "0" + "]" * 50_000 + "\n"
    yield "deep_ternary.py", "import torch\nv = " + "a if b else " * 30_000 + "c\n"
    yield "deep_power.py", "import torch\nv = " + " ** ".join(["2"] * 30_000) + "\n"
    yield "deep_attribute.py", "import torch\nv = torch" + ".a" * 200_000 + "\n"
    yield "deep_method_chain.py", "import torch\nv = torch" + ".a()" * 50_000 + "\n"
    yield "deep_sum.py", "import torch\nv = " + "+".join(["a"] * 100_000) + "\n"
    yield "deep_string_concatenation.py", "import torch\nv = " + " ".join(["'a'"] * 100_000) + "\n"
    yield "deep_indentation.py", "import torch\n" + nested("if a:", 2000, "f()", " ")
    yield "deep_functions.py", "import torch\n" + nested("def f():", 1500, "f()", " ")
    yield "deep_classes.py", "import torch\n" + nested("class C:", 1500, "a = 1", " ")
    yield "deep_withs.py", "import torch\n" + nested("with torch.no_grad():", 1500, "f()", " ")
    yield "deep_tries.py", "import torch\n" + nested("try:", 800, "f()", " ")
    yield "deep_loops.py", "import torch\n" + nested("while a:", 1000, "x += torch.f(x)", " ")
    yield "deep_matches.py", "import torch\n" + "match x:\n case " + "[" * 5000 + "]" * 5000 + ": pass\n"
    yield "deep_fstrings.py", "import torch\nv = " + "f'{" * 500 + "1" + "}'" * 500 + "\n"
    yield "deep_comprehension.py", "import torch\nv = [x " + "for x in y " * 20_000 + "]\n"
    yield "deep_decorators.py", "import torch\n" + "@d(" * 5000 + ")" * 5000 + "\ndef f(): pass\n"
    yield "deep_annotations.py", "import torch\ndef f(x: " + "a[" * 5000 + "]" * 5000 + "): pass\n"
    yield "one_line_of_statements.py", "import torch; " + "x = torch.a(x); " * 50_000
    yield "one_huge_function.py", "import torch\ndef f(x):\n" + "    x = torch.exp(x) + 1\n" * 20_000
    yield "many_loops_in_row.py", "import torch\ndef f(x):\n" + "    for i in r:\n        x = torch.exp(x)\n" * 5000
    yield "many_regions_in_row.py", ("import torch\ndef f(x):\n" +
                                     "    with torch.autocast('cuda'):\n        x = torch.exp(x)\n" * 3000)
    yield "many_conditional_regions.py", "import torch\ndef f(x, a):\n" + "".join(
        f"    c{i} = torch.autocast('cuda') if a[{i}] else torch.no_grad()\n    with c{i}:\n        x = torch.exp(x)\n"
        for i in range(500))
    yield "many_spread_dictionaries.py", "import torch\ndef f(g):\n    k = dict(" + ", ".join(
        f"a{i}=torch.half" for i in range(2000)) + ")\n    d = dict(a=1)\n" + "    g(**k)\n    g(**d)\n" * 10_000
    yield "many_scalers.py", "import torch\ndef f(l, o):\n" + "".join(
        f"    s{i} = torch.amp.GradScaler()\n    s{i}.scale(l).backward()\n    s{i}.step(o)\n" for i in range(500))
    yield "diamond_calls.py", "import torch\ndef f0(x): return torch.exp(x)\n" + "".join(
        f"def f{i}(x): return f{i - 1}(x) + f{i - 1}(x)\n" for i in range(1, 300)) + "torch.autocast('cuda')(f299)(1)\n"
    yield "complete_call_graph.py", "import torch\n" + "".join(
        f"def f{i}(x):\n" + "".join(f"    x = f{j}(x)\n" for j in range(60)) for i in range(60))
    yield "python2.py", "import torch\nprint 'half'\nexec 'x'\nraise E, 'x'\n`x`\n0777\n1L\nu'' <> ur''\n"
    yield "cython.pyx.py", "import torch\ncdef int f(double x) nogil:\n    return <int>x\n"
    yield "html.py", "<html><script>torch.half()</script></html>\n"
    yield "json.py", json.dumps({"torch": [1, None, True]})
    yield "letter.py", "Dear torch,\n\nthis is a letter, not half a program.\n" * 500
    yield "merge_conflict.py", DEFECT.replace("        scaler.step", "<<<<<<< HEAD\n        scaler.step").replace(
        "        scaler.update", "=======\n>>>>>>> x\n        scaler.update")
    yield "diff.py", "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-import torch\n+import torch.half\n"
    yield "template.py", "import torch\n{% for x in y %}\n{{ x.half() }}\n{% endfor %}\n" + DEFECT
    yield "wrong_indentation.py", DEFECT.replace("        scaler.step", "   scaler.step")
    yield "mixed_tabs.py", DEFECT.replace("        scaler.step", "\tscaler.step")
    yield "duplicate_arguments.py", DEFECT + "def f(a, a, *b, *c, **d, **e, f): pass\nf(**a, *b, c=1, c=2, d)\n"
    yield "bad_assignment_targets.py", DEFECT + "1 = 2\nf() = 3\na + b = c\n'x' += 1\n(yield) = 1\nNone = 2\n"
    yield "misplaced_keywords.py", DEFECT + "return\nbreak\ncontinue\nyield\nawait x\nnonlocal a\n"
    yield "bad_escapes.py", DEFECT + "s = '\\N{NOPE} \\x \\u12 \\777'\n"
    yield "nan_and_inf_constants.py", DEFECT + "a = float('nan')\nb = float('1e5000')\nc = 1e400\nd = -float('inf')\n"
    yield "notebook_empty.ipynb", ""
    yield "notebook_null.ipynb", "null"
    yield "notebook_array.ipynb", "[]"
    yield "notebook_string.ipynb", '"cells"'
    yield "notebook_number.ipynb", "1e999999"
    yield "notebook_no_cells.ipynb", "{}"
    yield "notebook_cells_not_array.ipynb", '{"cells": {"cell_type": "code", "source": "import torch"}}'
    yield "notebook_source_number.ipynb", '{"cells": [{"cell_type": "code", "source": 3}]}'
    yield "notebook_source_nested.ipynb", '{"cells": [{"cell_type": "code", "source": [["torch"], {"a": "b"}]}]}'
    yield "notebook_truncated.ipynb", notebook([DEFECT])[:-40]
    yield "notebook_bad_escape.ipynb", '{"cells": [{"cell_type": "code", "source": "\\q"}]}'
    yield "notebook_lone_surrogate.ipynb", '{"cells": [{"cell_type": "code", "source": "\\ud800 torch"}]}'
    yield "notebook_bad_utf8.ipynb", b'{"cells": [{"cell_type": "code", "source": "torch \xff"}]}'
    yield "notebook_utf16.ipynb", notebook([DEFECT]).encode("utf-16")
    yield "notebook_deep.ipynb", "[" * 100_000
    yield "notebook_deep_objects.ipynb", '{"cells": ' * 50_000
    yield "notebook_duplicate_keys.ipynb", '{"cells": [{"cell_type": "code", "source": "a", "source": ""}], "cells":[]}'
    yield "notebook_syntax_error.ipynb", notebook(["import torch\ndef f(:\n", DEFECT])
    yield "notebook_julia.ipynb", notebook(["using Flux; half(x)"], metadata={"language_info": {"name": "julia"}})
    yield "notebook_nul.ipynb", '{"cells": [{"cell_type": "code", "source": "torch \\u0000 x"}]}'
    yield "is_json.ipynb.py", notebook([DEFECT])


def write(path, content):
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))


def run(folder, *options, expect=(0, 1), limit=4 * TIMEOUT):
    done = subprocess.run([lint, "--isolated", "--no-cache", "--timeout", str(TIMEOUT), "--", *options], cwd=folder,
                          capture_output=True, timeout=limit, stdin=subprocess.DEVNULL)
    assert done.returncode >= 0, f"killed by signal {-done.returncode}: {done.stderr[-400:]}"
    assert done.returncode in expect, \
        f"exit {done.returncode}, not {expect}\n{done.stdout[-600:]}\n{done.stderr[-600:]}"
    assert b"\x1b" not in done.stdout, "an escape code of the source reached the terminal"
    return done


def check(name, content, must_find):
    folder = tempfile.mkdtemp(prefix="mp-hostile-")
    try:
        write(os.path.join(folder, name), content)
        write(os.path.join(folder, "sane_beside_it.py"), DEFECT)
        before = sorted(os.listdir(folder))
        began = time.monotonic()
        done = run(folder, name, "sane_beside_it.py", expect=(1,))
        took = time.monotonic() - began
        assert b"sane_beside_it.py:11:" in done.stdout, f"the sane file was not analysed\n{done.stdout[-400:]}"
        assert b"crash" not in done.stderr + done.stdout, f"a worker crashed\n{done.stderr[-400:]}"
        assert took < TIMEOUT, f"took {took:.1f} s"
        found = done.stdout.count(RULE) - 1
        assert not must_find or found > 0, \
            f"the defect in it was not found\n{done.stdout[-400:]}\n{done.stderr[-400:]}"
        assert sorted(os.listdir(folder)) == before, f"files appeared: {set(os.listdir(folder)) - set(before)}"
    finally:
        shutil.rmtree(folder)


def check_together(cases):
    """All of them in one run, as a directory: the counts add up and the sane file is found."""
    folder = tempfile.mkdtemp(prefix="mp-hostile-")
    try:
        for i, (name, content, _) in enumerate(cases):
            os.mkdir(os.path.join(folder, str(i)))
            write(os.path.join(folder, str(i), name), content)
        write(os.path.join(folder, "sane_beside_it.py"), DEFECT)
        done = run(folder, ".", expect=(1,), limit=30 * TIMEOUT)
        assert b"sane_beside_it.py:11:" in done.stdout, "the sane file was not analysed"
    finally:
        shutil.rmtree(folder)


def projects():
    """Hostile relations between files: {path: text}, all of it analysed as a directory."""
    yield "import_cycle", {"a.py": "from b import f\nimport torch\n" + DEFECT, "b.py": "from c import f\n",
                           "c.py": "from a import f\nimport torch\n"}
    yield "imports_itself", {"a.py": "from a import *\nimport a\nfrom . import a\nfrom .a import b\n" + DEFECT}
    yield "package_cycle", {"p/__init__.py": "from .q import *\nfrom . import q\n",
                            "p/q/__init__.py": "from .. import *\nfrom ..q import q\n", "p/q/r.py": DEFECT}
    yield "too_many_dots", {"a.py": "from ......... import torch as t\nfrom .........x import y\n" + DEFECT}
    yield "same_module_twice", {"x/a.py": DEFECT, "y/a.py": DEFECT, "x.py": DEFECT, "x/__init__.py": ""}
    yield "named_like_libraries", {"torch/__init__.py": "half = 1\n", "torch/nn.py": "import torch", "main.py": DEFECT}
    derived = "import torch\nfrom {0} import {1}\nclass {2}({1}):\n    def f(self): return super().f()\n"
    yield "cyclic_classes", {"a.py": derived.format("b", "B", "A") + DEFECT, "b.py": derived.format("a", "A", "B")}
    yield "many_files", {f"m{i}.py": f"import torch\nfrom m{i + 1} import f\ndef g(x): return f(x).half()\n"
                         for i in range(400)} | {"main.py": DEFECT}
    yield "config_bombs", {"main.py": DEFECT + "import deepspeed\ndeepspeed.initialize(config='ds.json')\n"
                           "hmp.convert(bf16_file_path='ops_bf16.txt')\n",
                           "ds.json": "[" * 100_000, "ops_bf16.txt": "softmax\n" * 100_000}
    bomb = "a0: &a0 [" + "x, " * 9 + "x]\n" + "".join(
        f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]\n" for i in range(1, 12))
    loads = DEFECT + "".join(f"import yaml\ncfg{i} = yaml.safe_load(open('f{i}.yaml'))\nx{i} = torch.zeros(3, "
                             f"dtype=getattr(torch, cfg{i}['a11'].b['c']))\n" for i in range(9))
    yield "data_bombs", {"main.py": loads, "f0.yaml": bomb, "f1.yaml": "[" * 100_000, "f2.yaml": "{a: " * 100_000,
                         "f3.yaml": "- " * 100_000, "f4.yaml": "a11: &x {b: *x}\n", "f5.yaml": "a" * 2_000_000,
                         "f6.yaml": "a11: !!python/object/apply:os.abort []\n",
                         "f7.yaml": "".join(f"k{i}: 1\n" for i in range(100_000)), "f8.yaml": "%YAML 9.9\n--- \0\n"}
    yield "config_is_directory", {"main.py": DEFECT + "import deepspeed\ndeepspeed.initialize(config='ds.json')\n",
                                  "ds.json/x": ""}
    yield "broken_init", {"p/__init__.py": "def (:\n", "p/train.py": DEFECT, "p/sub/__init__.py": "\0",
                          "p/sub/x.py": DEFECT}


def check_project(files):
    folder = tempfile.mkdtemp(prefix="mp-hostile-")
    try:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            write(os.path.join(folder, path), text)
        done = run(folder, ".", expect=(1,))
        assert RULE in done.stdout, f"the defect was not found\n{done.stdout[-400:]}{done.stderr[-400:]}"
        assert b"crash" not in done.stderr + done.stdout, f"a worker crashed\n{done.stderr[-400:]}"
    finally:
        shutil.rmtree(folder)


def main():
    cases = [(n, c, True) for n, c in valid()] + [(n, c, False) for n, c in broken()]
    checks = [(name, lambda n=name, c=content, m=must: check(n, c, m)) for name, content, must in cases]
    checks += [(name, lambda f=files: check_project(f)) for name, files in projects()]
    checks.append(("all together", lambda: check_together(cases)))
    only, failed, slow = sys.argv[2:], [], []
    for name, job in checks:
        if only and name not in only:
            continue
        began = time.monotonic()
        try:
            job()
        except (AssertionError, subprocess.TimeoutExpired) as e:
            failed.append(name)
            print(f"FAIL {name!r}: {e}", flush=True)
        slow.append((time.monotonic() - began, name))
    print(f"{len(checks)} hostile Python inputs, {len(failed)} failed; slowest: " +
          ", ".join(f"{name} {seconds:.1f} s" for seconds, name in sorted(slow, reverse=True)[:5]))
    return 1 if failed or len(checks) < 150 else 0


sys.exit(main())
