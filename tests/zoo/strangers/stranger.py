"""Runs a training script of others as it is, in a regime, and prints what it did.

    stranger.py [--most N] [--defect KIND CLASS LAYER good|bad] REGIME OUT SCRIPT [ARGUMENT...]

own, fp32: as the script is. bf16, fp16: autocast around each outermost call of a module, as its users would write it.
bf16-outputs: its results are fp32 then, as accelerate makes them. fp16: also a GradScaler around backward and step,
which fp16-reference has without autocast. The script ends by itself, or after 60 backwards. OUT: JSON with the steps
and losses, and hashes of all parameters; of a rank but the first OUT.RANK. What has no place on this machine is stood
in for: `.cuda()` is the thing itself, CIFAR-10 has random pictures, and gym is gymnasium.

With --defect, a layer of the outermost module of that class is changed before its first call (programs/lowered.py), and
OUT.npy has the values of the optimizer's parameters. KIND "list": OUT.layers has the layers that each kind fits.
"""
import argparse
import atexit
import contextlib
import gc
import hashlib
import json
import os
import random
import runpy
import sys

import numpy
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

ZOO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS = [os.path.join(ZOO, "programs"), ZOO]
sys.path += OURS
import lowered  # noqa: E402
import stand_in  # noqa: E402
sys.path[-len(OURS):] = []  # the script's own modules may have such names
KINDS = {**lowered.KINDS, **lowered.STRONGER, **lowered.MORE}

parser = argparse.ArgumentParser()
parser.add_argument("--most", type=int, default=60)  # backwards
parser.add_argument("--defect", nargs=4, default=("", "", "", ""))
parser.add_argument("words", nargs=argparse.REMAINDER)
options = parser.parse_args()
regime, out, script = options.words[:3]
out += "." + os.environ["RANK"] if int(os.environ.get("RANK", 0)) else ""
sys.argv = options.words[2:]
kind, root, layer, form = options.defect
steps, losses, kept = {}, [], {}  # kept: parameters, whose model may be gone at the end
pid = os.getpid()
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def in_fp32(result):
    return torch.utils._pytree.tree_map(
        lambda x: x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, result)


def around_outermost(enter, ends=lambda result: result):
    plain, depth = torch.nn.Module.__call__, [0]

    def call(module, *args, **kwargs):
        depth[0] += 1
        try:
            if depth[0] > 1:
                return plain(module, *args, **kwargs)
            with enter(module):
                return ends(plain(module, *args, **kwargs))
        finally:
            depth[0] -= 1
    torch.nn.Module.__call__ = call


def under_autocast(dtype, ends=lambda result: result):
    around_outermost(lambda _: torch.autocast(DEVICE, dtype=dtype), ends)


def listed(module):
    """Notes the layers of the outermost module that each kind fits."""
    name = type(module).__name__
    rows = [[each, name, *(n for n, m in module.named_modules() if n and fits(m))]
            for each, (_, _, fits) in KINDS.items()]
    layers[name] = [row for row in rows if len(row) > 2]


def lowers(module):
    """Puts the defect into the first outermost module of its class."""
    if type(module).__name__ != root or changed:
        return
    change, low, _ = KINDS[kind]
    after_step = change(module, layer, low if form == "bad" else torch.float32)
    changed.append(module)
    if after_step:
        register_optimizer_step_post_hook(lambda *args: after_step(*args))


@contextlib.contextmanager
def with_defect(module):
    (listed if kind == "list" else lowers)(module)
    yield


def with_scaler():
    scaler, inside = torch.amp.GradScaler(DEVICE, init_scale=2.0 ** 12), [False]
    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop):
        if "step" not in vars(kind):  # AdamW has Adam's
            continue

        def step(self, closure=None, plain=torch.optim.Optimizer.profile_hook_step(kind.step)):
            if inside[0]:
                return plain(self)
            inside[0] = True
            scaler.step(self)
            scaler.update()
            inside[0] = False
        step.hooked = True  # else the hooks of torch run for the call of the script and for that of the scaler
        kind.step = step
    return scaler


stand_in.everything()
layers, changed = {}, []
if kind:
    around_outermost(with_defect)
scaler = with_scaler() if regime.startswith("fp16") else None
if regime in ("bf16", "fp16"):
    under_autocast({"bf16": torch.bfloat16, "fp16": torch.float16}[regime])
if regime == "bf16-outputs":
    under_autocast(torch.bfloat16, in_fp32)
plain_backward = torch.Tensor.backward


def backward(self, *args, **kwargs):
    if len(losses) == options.most:
        sys.exit(0)
    losses.append(self.detach())
    return plain_backward(scaler.scale(self) if scaler else self, *args, **kwargs)


torch.Tensor.backward = backward


def stepped(optimizer, *_):
    steps[id(optimizer)] = steps.get(id(optimizer), 0) + 1
    kept.update({id(p): p for group in optimizer.param_groups for p in group["params"]})


register_optimizer_step_post_hook(stepped)


@atexit.register
def tell():
    if os.getpid() != pid:
        return
    found = kept | {id(p): p for m in gc.get_objects() if issubclass(type(m), torch.nn.Module) for p in m.parameters()}
    hashes = sorted(hashlib.sha256(p.detach().float().contiguous().cpu().numpy().tobytes()).hexdigest()
                    for p in found.values())
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"steps": list(steps.values()), "losses": [float(x).hex() for x in losses], "hashes": hashes,
                   "changed": len(changed)}, f)
    if kind == "list":
        with open(out + ".layers", "w", encoding="utf-8") as f:
            json.dump([row for rows in layers.values() for row in rows], f)
    elif kind:
        values = [p.detach().float().reshape(-1).cpu().numpy() for p in (kept or found).values()]
        if values:  # else the script ended before its model, and its own error is the last line
            numpy.save(out + ".npy", numpy.concatenate(values))


for seed in (random.seed, numpy.random.seed, torch.manual_seed):
    seed(1)
torch.set_num_threads(1)
if DEVICE == "cuda":  # else two runs need not have the same bits
    torch.use_deterministic_algorithms(True, warn_only=True)
sys.path[0] = os.path.dirname(os.path.abspath(script))
runpy.run_path(script, run_name="__main__")
