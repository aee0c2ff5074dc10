"""Runs a training script of others as it is, in a regime, and prints what it did.

    stranger.py REGIME OUT SCRIPT [ARGUMENT...]

own, fp32: as the script is. bf16, fp16: autocast around each outermost call of a module, as its users would write it;
bf16-outputs with results in fp32, as accelerate gives them; fp16 with a GradScaler around backward and step, which
fp16-reference has without autocast. The script ends by itself, or after 60 backwards. OUT: JSON with the steps and losses, and hashes of all parameters.
"""
import atexit
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

MOST = 60  # backwards
regime, out, script = sys.argv[1:4]
sys.argv = sys.argv[3:]
steps, losses, kept = {}, [], {}  # kept: parameters, whose model may be gone at the end
pid = os.getpid()


def in_fp32(result):
    return torch.utils._pytree.tree_map(
        lambda x: x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, result)


def under_autocast(dtype, ends=lambda result: result):
    plain, depth = torch.nn.Module.__call__, [0]

    def call(module, *args, **kwargs):
        depth[0] += 1
        try:
            if depth[0] > 1:
                return plain(module, *args, **kwargs)
            with torch.autocast("cpu", dtype=dtype):
                return ends(plain(module, *args, **kwargs))
        finally:
            depth[0] -= 1
    torch.nn.Module.__call__ = call


def with_scaler():
    scaler, inside = torch.amp.GradScaler("cpu", init_scale=2.0 ** 12), [False]
    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop):
        def step(self, closure=None, plain=kind.step):
            if inside[0]:
                return plain(self)
            inside[0] = True
            scaler.step(self)
            scaler.update()
            inside[0] = False
        kind.step = step
    return scaler


scaler = with_scaler() if regime.startswith("fp16") else None
if regime in ("bf16", "fp16"):
    under_autocast({"bf16": torch.bfloat16, "fp16": torch.float16}[regime])
if regime == "bf16-outputs":
    under_autocast(torch.bfloat16, in_fp32)
plain_backward = torch.Tensor.backward


def backward(self, *args, **kwargs):
    if len(losses) == MOST:
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
    hashes = sorted(hashlib.sha256(p.detach().float().contiguous().numpy().tobytes()).hexdigest()
                    for p in found.values())
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"steps": list(steps.values()), "losses": [float(x).hex() for x in losses], "hashes": hashes}, f)


for seed in (random.seed, numpy.random.seed, torch.manual_seed):
    seed(1)
torch.set_num_threads(1)
sys.path[0] = os.path.dirname(os.path.abspath(script))
runpy.run_path(script, run_name="__main__")
