"""A large tree gives the same findings with its slice (docs/ARCHITECTURE.md) and with every file: --whole-tree.

Usage: whole_tree_test.py MP_LINT ROOT                        the Python examples of every rule's page, and PROGRAMS
       whole_tree_test.py MP_LINT ROOT --wheel NAME --into DIR --python PYTHON    a wheel of PyPI

Each program is a tree of its own, made large by one file without code. When the triggers of a rule
(analyzer/rules/triggers.hpp) lack a word, its findings are lost in the slice.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

FENCE = re.compile(r"^```(\w+)( file=\S+)?\n(.*?)^```$", re.M | re.S)
LARGE = 9 << 20  # above this size a tree is sliced

# What no page shows: each word alone, in a file that no call leads to.
PROGRAMS = {
    "isneginf": {"a.py": """\
import torch


def wait(batches):
    for x in batches:
        if torch.isneginf(x).any().item():
            break
"""},
    "enable_grad": {"a.py": """\
import torch


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, x):
        ctx.f = f
        return f(x)

    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            y = ctx.f(g)
        return torch.autograd.grad(y, g, g)
"""},
    "custom_fwd": {"a.py": """\
import torch
from torch.cuda import amp


class Product(torch.autograd.Function):
    @staticmethod
    @amp.custom_fwd
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g
"""},
    "custom_op": {"ops.py": """\
import torch


@torch.library.custom_op("own::pair", mutates_args=())
def pair(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(x, x, y)
""", "train.py": """\
import torch


def run(x, y):
    with torch.autocast("cuda", dtype=torch.float16):
        return torch.ops.own.pair(x, y)
"""},
    "-#e": {"kit/trainer.py": """\
class Trainer:
    def __init__(self, model, fp16):
        self.model = model
        if fp16:
            self.model = self.model.half()

    def count(self):
        return sum(p.numel() for p in self.model.parameters())
""", "kit/layers.py": """\
import torch


class Attention(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.q = torch.nn.Linear(n, n)

    def forward(self, x, mask):
        return self.q(x).masked_fill(mask, -9e15).softmax(-1)
"""},
    "compute_loss": {"a.py": """\
from transformers import TrainingArguments

args = TrainingArguments("out", fp16=True)
""", "b.py": """\
import torch
from transformers import Trainer


class Own(Trainer):
    def compute_loss(self, model, inputs):
        p = torch.sigmoid(model(inputs))
        return torch.nn.functional.binary_cross_entropy(p, inputs["y"])
"""},
    "training_step": {"a.py": """\
import lightning
from lightning import Trainer

trainer = Trainer(precision="16-mixed")


class Base(lightning.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
""", "b.py": """\
import torch
from a import Base


class Net(Base):
    def training_step(self, batch):
        p = torch.sigmoid(self.net(batch))
        return torch.nn.functional.binary_cross_entropy(p, batch.y)
"""},
    "loss_context_manager": {"a.py": """\
import torch


def step(self, model, inputs):
    with self.compute_loss_context_manager():
        p = torch.sigmoid(model(inputs))
        return torch.nn.functional.binary_cross_entropy(p, inputs)
"""},
    "StableEmbedding": {"a.py": """\
import bitsandbytes as bnb
from torch import nn


def train():
    net = nn.Embedding(10, 10)
    return bnb.optim.Adam8bit(net.parameters())
""", "b.py": """\
import bitsandbytes as bnb


def embedding():
    return bnb.nn.StableEmbedding(10, 10)
"""},
    "BFloat16Tensor": {"a.py": """\
import torch


def run(n):
    return torch.sum(torch.cuda.BFloat16Tensor(n))
"""},
    "ALLOWLIST_ADD": {"a.py": """\
import os


def setup():
    os.environ["TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ALLOWLIST_ADD"] = "Softmax"
"""},
    # A wrapper without any word around a kernel: without it the test's call would be a call of the kernel.
    "native": {"csrc/total.cu": """\
#include <ATen/Dispatch.h>
#include <torch/extension.h>

template <typename T>
__global__ void row_sums(const T* x, T* out, int n) {
    T sum = 0;
    for (int i = 0; i < n; ++i) sum += x[blockIdx.x * n + i];
    out[blockIdx.x] = sum;
}

torch::Tensor total(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options());
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "total", [&] {
        row_sums<scalar_t><<<x.size(0), 1>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), x.size(1));
    });
    return out;
}
""", "kit/ops.py": """\
from kit import _C


def total(x):
    return _C.total(x)
""", "tests/test_ops.py": """\
import torch
from kit.ops import total


def test_total():
    total(torch.ones(4, 4).half())
"""},
    "ds_config": {"a.py": """\
from transformers import TrainingArguments


def arguments():
    return TrainingArguments("out", deepspeed="ds_config.json")
""", "ds_config.json": """\
{"train_micro_batch_size_per_gpu": 1, "communication_data_type": "fp16"}
"""},
}


def examples_of(page):
    """[files by name], as lint_pages_test.cpp reads them: fences that name files are one program of their section."""
    programs, joins, end = [], False, 0
    for match in FENCE.finditer(page):
        language, named, text = match[1], match[2], match[3]
        joins = joins and bool(named) and "\n## " not in page[end:match.start()]
        if not joins:
            programs.append({})
        suffix = {"python": ".py", "cuda": ".cu"}.get(language, ".cpp")
        programs[-1][named[6:] if named else "example" + suffix] = text
        joins, end = bool(named), match.end()
    return [p for p in programs if any(n.endswith((".py", ".ipynb")) for n in p)]


def lint(binary, folder, *flags):
    command = [binary, "--isolated", "--no-cache", "--cuda", "stubs", "--torch-headers", "stubs", "--select", "ALL",
               "--output", "json", *flags, "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder}: exit {done.returncode}: {done.stderr[-500:]}")
    report = json.loads(done.stdout)
    return report["findings"], report["suppressed"]


def difference(sliced, whole):
    lines = []
    for part, (some, all_of_it) in zip(("", " (suppressed)"), zip(sliced, whole)):
        for what, here, there in (("lost in the slice", all_of_it, some), ("only in the slice", some, all_of_it)):
            lines += [f"{what}{part}: {f['file']}:{f['line']} {f['rule']} {f['message']}"
                      for f in here if f not in there]
    return lines or (["in another order"] if sliced != whole else [])


def compare(binary, where, files, padding):
    """(number of findings, what differs)"""
    with tempfile.TemporaryDirectory(prefix="mp-whole-tree-") as folder:
        for name, text in files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        whole = lint(binary, folder, "--whole-tree")  # of a small tree: parsing the padding would take most of the time
        os.symlink(padding, os.path.join(folder, "padding.py"))
        lines = difference(lint(binary, folder), whole)
        if where in PROGRAMS and where != "StableEmbedding" and not whole[0]:
            lines.append("nothing is found at all")
        return len(whole[0]), [f"{where}: {line}" for line in lines]


def pages(binary, root):
    programs = list(PROGRAMS.items())
    for path in sorted(glob.glob(os.path.join(root, "testdata/lint/MP*.md"))):
        with open(path, encoding="utf-8") as f:
            for number, files in enumerate(examples_of(f.read()), 1):
                programs.append((f"{os.path.basename(path)}, program {number}", files))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as padding:
        padding.write("#" + "-" * LARGE + "\n")
        padding.flush()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda p: compare(binary, *p, padding.name), programs))
    return len(programs), sum(n for n, _ in results), [line for _, lines in results for line in lines]


def wheel(binary, options):
    os.makedirs(options.into, exist_ok=True)
    found = glob.glob(os.path.join(options.into, f"{options.wheel}-*.whl"))
    if not found:
        command = [options.python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest",
                   options.into, options.wheel]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"skipped: {options.wheel} cannot be downloaded: {done.stderr.strip()[-300:]}")
            sys.exit(77)
        found = glob.glob(os.path.join(options.into, f"{options.wheel}-*.whl"))
    with tempfile.TemporaryDirectory(prefix="mp-wheel-") as folder:
        with zipfile.ZipFile(found[0]) as archive:
            archive.extractall(folder)
        whole = lint(binary, folder, "--whole-tree")
        return 1, len(whole[0]), difference(lint(binary, folder), whole)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lint", type=os.path.abspath)
    parser.add_argument("root")
    parser.add_argument("--wheel")
    parser.add_argument("--into")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    trees, findings, faults = wheel(options.lint, options) if options.wheel else pages(options.lint, options.root)
    print("\n".join(faults + [f"{trees} trees, {findings} findings, {len(faults)} differences"]))
    assert findings > (0 if options.wheel else 120), "hardly anything was found"
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
