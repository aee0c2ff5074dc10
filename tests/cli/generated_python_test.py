"""Random training programs with known answers: mp-lint reports exactly the defects that the generator planted.

Usage: generated_python_test.py MP_LINT [--seed N] [--count N] [--show N]. A program is composed of regions, casts,
losses, the loss-scaling protocol and helpers in other files. Every part knows which rule must report which of its
lines, given the parts around it. `--show N` prints the N-th program with its answers and lints only that program.
"""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

RULES = ["MP101", "MP103", "MP107", "MP201", "MP202", "MP203", "MP204", "MP205", "MP301", "MP302", "MP411"]
LOW = {"fp16": "torch.float16", "bf16": "torch.bfloat16"}
NAMES = ["net", "model", "encoder", "student", "backbone"]


class File:
    """Lines of one file; `add(text, RULE)` adds a line that must be reported."""

    def __init__(self, name):
        self.name, self.lines, self.answers = name, [], set()

    def add(self, text="", *rules, depth=0):
        self.lines.append("    " * depth + text if text else "")
        self.answers |= {(self.name, len(self.lines), rule) for rule in rules}

    def text(self):
        return "\n".join(self.lines) + "\n"


class Region:
    """How the forward pass is put into a region. `covers`: forward alone, or the statements of the step too."""

    def __init__(self, rng):
        self.low = rng.choice(["fp16", "fp16", "bf16", None])
        self.style = rng.choice(["with", "alias", "variable", "several", "conditional", "decorator"])
        if self.low is None:
            self.style = rng.choice(["none", "disabled", "no_region_but_with"])
        dtype = LOW.get(self.low, "torch.float16")
        self.opens = {
            "with": f'torch.autocast("cuda", dtype={dtype})',
            "alias": f'mixed("cuda", dtype={dtype})',
            "variable": "context",
            "several": f'torch.set_grad_enabled(True), torch.autocast("cuda", dtype={dtype})',
            "conditional": "context",
            "disabled": f'torch.autocast("cuda", dtype={dtype}, enabled=False)',
            "no_region_but_with": "open(path) as log",
        }.get(self.style)
        if self.low == "fp16" and self.style in ("with", "several") and rng.random() < 0.3:
            self.opens = self.opens.replace(f", dtype={dtype}", "")  # fp16 is the default on CUDA
        self.decorator = f'@torch.autocast("cuda", dtype={dtype})' if self.style == "decorator" else None
        self.setup = None
        if self.style == "variable":
            self.setup = f'context = torch.autocast("cuda", dtype={dtype})'
        if self.style == "conditional":
            self.setup = f'context = torch.autocast("cuda", dtype={dtype}) if amp else contextlib.nullcontext()'
        self.is_on = self.low is not None
        self.covers_step = self.is_on and self.style != "decorator"
        # Under a condition the region is not on every path; findings on single ops are then not checked
        # here.
        self.is_sure = self.style != "conditional"


def noise(rng, file):
    """Ordinary code without findings."""
    n = rng.randrange(1000)
    pick = rng.randrange(9)
    if pick == 0:
        file.add(f"def read_config_{n}(path):")
        file.add("with open(path, encoding='utf-8') as f:", depth=1)
        file.add("return {k: v for k, v in (line.split('=', 1) for line in f)}", depth=2)
    elif pick == 1:
        file.add(f"def scores_{n}(values):")
        file.add("array = np.asarray(values, dtype=np.float32)", depth=1)
        file.add("return array / (array.sum() + 1e-12)", depth=1)
    elif pick == 2:
        file.add(f"class Meter{n}:")
        file.add("def __init__(self):", depth=1)
        file.add("self.total, self.count = 0.0, 0", depth=2)
        file.add("def step(self, value):", depth=1)
        file.add("self.total += value", depth=2)
        file.add("self.count += 1", depth=2)
        file.add("def scale(self, factor):", depth=1)
        file.add("return self.total / max(self.count, 1) * factor", depth=2)
    elif pick == 3:
        file.add(f"def wide_{n}(x: torch.Tensor):")
        file.add("y = x.float()", depth=1)
        file.add(f"return y / (y.norm(dim=-1, keepdim=True) + {rng.choice(['1e-8', '1e-12', '1e-6'])})", depth=1)
    elif pick == 4:
        file.add(f"def masked_{n}(scores, mask):")
        file.add("lowest = torch.finfo(scores.dtype).min", depth=1)
        file.add("return torch.softmax(scores.masked_fill(mask, lowest), dim=-1, dtype=torch.float32)", depth=1)
    elif pick == 5:
        file.add(f"def retry_{n}(action, times=3):")
        file.add("for attempt in range(times):", depth=1)
        file.add("try:", depth=2)
        file.add("return action()", depth=3)
        file.add("except OSError as error:", depth=2)
        file.add("print(attempt, error)", depth=3)
        file.add("return None", depth=1)
    elif pick == 6:
        file.add(f"TABLE_{n} = [(i, i ** 2 * 1e9) for i in range({rng.randrange(3, 40)})]")
    elif pick == 7:
        file.add(f'def half_{n}(items, scaler="none", autocast=None):')
        file.add('"""Half of the items; no tensor is there, whatever the names say."""', depth=1)
        file.add("return items[: len(items) // 2], scaler, autocast", depth=1)
    else:
        file.add(f"async def fetch_{n}(session, url):")
        file.add("async with session.get(url) as answer:", depth=1)
        file.add("return await answer.json()", depth=2)
    file.add()
    file.add()


def range_function(rng, file):
    """A function on tensors whose dtype its own text fixes, called from nowhere."""
    n = rng.randrange(1000)
    low = rng.choice(["fp16", "fp16", "bf16", "fp32"])
    cast = {"fp16": rng.choice(["x.half()", "x.to(torch.float16)", "x.to(dtype=torch.half)"]),
            "bf16": "x.bfloat16()", "fp32": "x.float()"}[low]
    kind = rng.choice(["eps", "fill", "reduce", "fine"])
    file.add(f"def prepare_{n}(x: torch.Tensor, mask):")
    file.add(f"narrow = {cast}", depth=1)
    if kind == "eps":
        rules = ["MP302"] if low == "fp16" else []
        file.add(f"return narrow / (narrow.abs() + {rng.choice(['1e-8', '1e-9', '1e-12'])})", *rules, depth=1)
    elif kind == "fill":
        rules = ["MP301"] if low == "fp16" else []
        file.add(f"return narrow.masked_fill(mask, {rng.choice(['-1e9', '-1e5', '1e30'])})", *rules, depth=1)
    elif kind == "reduce":
        wanted = rng.choice(["torch.float16", "torch.bfloat16", "torch.float32"])
        rules = ["MP411"] if wanted == "torch.float16" else []  # the others stay in range
        file.add(f"return torch.sum(x, dim=-1, dtype={wanted})", *rules, depth=1)
    else:
        file.add("return narrow.masked_fill(mask, -1e4) + 1e-3", depth=1)
    file.add()
    file.add()


def model_file(rng, region):
    """The network and its helper. Casts in them run in the region of the caller, or of the decorator."""
    ops, model = File("ops.py"), File("model.py")
    in_region = region.is_on and region.is_sure
    casts = [("x.half()", True), ("x.to(torch.bfloat16)", True), ("x.float()", False), ("x * 2", False)]
    here, there = rng.choice(casts + casts[2:] * 2), rng.choice(casts + casts[2:] * 2)
    if not region.is_sure:
        here, there = casts[2], casts[3]
    ops.add("import torch")
    ops.add("import numpy as np")
    ops.add()
    ops.add()
    for _ in range(rng.randrange(2)):
        noise(rng, ops)
    ops.add("def adjust(x: torch.Tensor):")
    ops.add(f"return {there[0]}", *(["MP101"] if there[1] and in_region else []), depth=1)
    model.add("import torch")
    model.add("from torch import nn")
    model.add(rng.choice(["from ops import adjust", "import ops"]))
    call = "ops.adjust" if "import ops" in model.lines[-1] else "adjust"
    model.add()
    model.add()
    model.add("class Network(nn.Module):")
    model.add("def __init__(self, width):", depth=1)
    model.add("super().__init__()", depth=2)
    model.add("self.enter = nn.Linear(width, width)", depth=2)
    model.add("self.leave = nn.Linear(width, 1)", depth=2)
    model.add()
    if region.decorator:
        model.add(region.decorator, depth=1)
    model.add("def forward(self, x):", depth=1)
    model.add("x = torch.relu(self.enter(x))", depth=2)
    model.add(f"x = {here[0]}", *(["MP101"] if here[1] and in_region else []), depth=2)
    model.add(f"x = {call}(x)", depth=2)
    model.add("return self.leave(x)", depth=2)
    return [ops, model]


class Protocol:
    """From the loss to the step: the calls, and the defects in them."""

    def __init__(self, rng, region):
        self.rng = rng
        self.scaled = region.low == "fp16" and rng.random() < 0.75
        faults = ["none", "none", "clip", "step", "update", "unscaled"] if self.scaled else ["none", "in_region"]
        if self.scaled and region.covers_step:
            faults.append("in_region")
        self.fault = rng.choice(faults)
        if self.fault == "in_region" and not (region.covers_step and region.is_sure):
            self.fault = "none"
        self.missing = region.low == "fp16" and not self.scaled
        self.clips = self.fault == "clip" or (self.fault in ("none", "update") and rng.random() < 0.5)
        self.scaler = rng.choice(['torch.amp.GradScaler("cuda")', "torch.cuda.amp.GradScaler()", 'Scaler("cuda")'])
        self.clip = rng.choice(["torch.nn.utils.clip_grad_norm_({}.parameters(), 1.0)",
                                "clip_norm({}.parameters(), 0.5)",
                                "nn.utils.clip_grad_value_({}.parameters(), 1.0)"])

    def backward(self, file, depth, scaler):
        rules = (["MP201"] if self.missing else []) + (["MP107"] if self.fault == "in_region" else [])
        if self.scaled and self.fault != "unscaled":
            file.add(f"{scaler}.scale(loss).backward()", *rules, depth=depth)
        else:
            file.add("loss.backward()", *rules, *(["MP202"] if self.fault == "unscaled" else []), depth=depth)

    def step(self, file, depth, scaler, optimizer, net):
        if self.clips:
            if self.scaled and self.fault != "clip":
                file.add(f"{scaler}.unscale_({optimizer})", depth=depth)
            file.add(self.clip.format(net), *(["MP203"] if self.fault == "clip" else []), depth=depth)
        if not self.scaled:
            file.add(f"{optimizer}.step()", depth=depth)
        elif self.fault == "step":
            file.add(f"{optimizer}.step()", "MP204", depth=depth)
        else:
            file.add(f"{scaler}.step({optimizer})", *(["MP205"] if self.fault == "update" else []), depth=depth)
            if self.fault != "update":
                file.add(f"{scaler}.update()", depth=depth)


def loss_line(rng, file, region, depth, net):
    in_region = region.covers_step and region.is_sure
    if region.is_sure and rng.random() < 0.25:
        file.add(f"loss = F.binary_cross_entropy(torch.sigmoid({net}(x)), y)",
                 *(["MP103"] if in_region else []), depth=depth)
    else:
        file.add(rng.choice(["loss = F.mse_loss({}(x), y)", "loss = F.binary_cross_entropy_with_logits({}(x), y)",
                             "out = {}(x); loss = F.l1_loss(out, y)"]).format(net), depth=depth)


def body(rng, file, region, protocol, depth, net, scaler, optimizer):
    """One training step."""
    file.add(f"{optimizer}.zero_grad(set_to_none=True)", depth=depth)
    inner = depth
    if region.opens:
        file.add(f"with {region.opens}:", depth=depth)
        inner = depth + 1
    loss_line(rng, file, region, inner, net)
    protocol.backward(file, inner if protocol.fault == "in_region" else depth, scaler)
    protocol.step(file, depth, scaler, optimizer, net)


def main_file(rng, region, protocol):
    file = File("train.py")
    for line in ["import contextlib", "import torch", "import numpy as np", "import torch.nn.functional as F",
                 "from torch import nn", "from torch.amp import autocast as mixed",
                 "from torch.amp import GradScaler as Scaler",
                 "from torch.nn.utils import clip_grad_norm_ as clip_norm", "from model import Network"]:
        file.add(line)
    file.add()
    file.add()
    parts = [noise] * rng.randrange(3) + [range_function] * rng.randrange(3)
    rng.shuffle(parts)
    for part in parts:
        part(rng, file)
    net = rng.choice(NAMES)
    shape = rng.choice(["loop", "loop", "class", "function"])
    setup = [f"{net} = Network(64).cuda()",
             f"optimizer = torch.optim.{rng.choice(['SGD', 'Adam'])}({net}.parameters(), lr=0.1)"]
    if shape == "class":
        file.add("class Trainer:")
        file.add("def __init__(self, amp, path):", depth=1)
        file.add("self.net = Network(64).cuda()", depth=2)
        file.add("self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)", depth=2)
        if protocol.scaled:
            file.add(f"self.scaler = {protocol.scaler}", depth=2)
        file.add()
        file.add("def step(self, x, y, amp, path):", depth=1)
        if region.setup:
            file.add(region.setup, depth=2)
        body(rng, file, region, protocol, 2, "self.net", "self.scaler", "self.optimizer")
        file.add()
        file.add("def fit(self, batches, amp, path):", depth=1)
        file.add("for x, y in batches:", depth=2)
        file.add("self.step(x.cuda(), y.cuda(), amp, path)", depth=3)
    elif shape == "function":
        file.add(f"def step(net, optimizer, {'scaler, ' if protocol.scaled else ''}x, y, amp, path):")
        if region.setup:
            file.add(region.setup, depth=1)
        body(rng, file, region, protocol, 1, "net", "scaler", "optimizer")
        file.add()
        file.add()
        file.add("def train(batches, amp, path):")
        for line in setup:
            file.add(line, depth=1)
        if protocol.scaled:
            file.add(f"scaler = {protocol.scaler}", depth=1)
        file.add("for x, y in batches:", depth=1)
        file.add(f"step({net}, optimizer, {'scaler, ' if protocol.scaled else ''}x, y, amp, path)", depth=2)
    else:
        file.add("def train(batches, amp, path):")
        for line in setup:
            file.add(line, depth=1)
        if protocol.scaled:
            file.add(f"grad_scaler = {protocol.scaler}", depth=1)
        if region.setup:
            file.add(region.setup, depth=1)
        file.add("for epoch in range(10):" if rng.random() < 0.3 else "if True:", depth=1)
        file.add("for x, y in batches:", depth=2)
        body(rng, file, region, protocol, 3, net, "grad_scaler", "optimizer")
    for _ in range(rng.randrange(2)):
        file.add()
        file.add()
        noise(rng, file)
    return file


def program(seed):
    rng = random.Random(seed)
    region = Region(rng)
    protocol = Protocol(rng, region)
    return [*model_file(rng, region), main_file(rng, region, protocol)]


def lint_program(lint, files):
    """(findings, or None with what went wrong)."""
    folder = tempfile.mkdtemp(prefix="mp-generated-")
    try:
        for file in files:
            with open(os.path.join(folder, file.name), "w", encoding="utf-8") as f:
                f.write(file.text())
        done = subprocess.run([lint, "--no-cache", "--isolated", "--select", ",".join(RULES), "--output", "json", "."],
                              cwd=folder, capture_output=True, text=True, timeout=60)
        if done.returncode not in (0, 1):
            return None, f"exit {done.returncode}: {done.stderr[-300:]}"
        report = json.loads(done.stdout)
        bad = [u["path"] for u in report["units"] if u["state"] != "ok"]
        if bad:
            return None, f"not parsed: {bad}"
        return {(os.path.basename(f["file"]), f["line"], f["rule"]) for f in report["findings"]
                if f["severity"] != "note" or f["rule"] in ("MP101", "MP107")}, ""
    except subprocess.TimeoutExpired:
        return None, "ran for a minute"
    finally:
        shutil.rmtree(folder)


def show(files, found):
    answers = set().union(*(f.answers for f in files))
    for file in files:
        print(f"--- {file.name}")
        for number, line in enumerate(file.lines, 1):
            marks = [("missed " if a in answers - found else "wrong " if a in found - answers else "") + a[2]
                     for a in sorted(answers | found) if a[:2] == (file.name, number)]
            print(line + ("  # <<< " + ", ".join(marks) if marks else ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lint", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--show", type=int)
    args = parser.parse_args()
    numbers = range(args.count) if args.show is None else [args.show]
    programs = {n: program(f"{args.seed}:{n}") for n in numbers}
    for files in programs.values():
        for file in files:
            compile(file.text(), file.name, "exec", dont_inherit=True)  # the generator writes valid Python
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(programs, pool.map(lambda files: lint_program(args.lint, files), programs.values())))
    failed, planted, by_rule = [], 0, {}
    for n, files in programs.items():
        answers = set().union(*(f.answers for f in files))
        planted += len(answers)
        found, problem = results[n]
        for rule in {a[2] for a in answers}:
            by_rule[rule] = by_rule.get(rule, 0) + 1
        if found == answers:
            continue
        failed.append(n)
        if found is None:
            print(f"program {n}: {problem}")
            continue
        for miss in sorted(answers - found):
            print("program {}: not found: {}:{} {}".format(n, *miss))
        for extra in sorted(found - answers):
            print("program {}: wrong:     {}:{} {}".format(n, *extra))
    if args.show is not None:
        show(programs[args.show], results[args.show][0] or set())
    elif args.count >= 200:
        assert set(by_rule) == set(RULES), f"never planted: {set(RULES) - set(by_rule)}"
    print(f"{len(programs)} programs, {planted} planted defects, {len(failed)} programs with a wrong answer "
          f"(seed {args.seed}; --show N prints one)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
