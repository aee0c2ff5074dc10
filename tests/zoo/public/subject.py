"""Runs one program of a public set as it is, or under autocast: subject.py CHECKOUT PATH [--dtype bf16] [-- ARGUMENTS].

A subject of GRIST runs until its loss is not finite, or for --iterations; GRIST's own search (`*_grist.py`) makes the
inputs. TrainCheck's markers do nothing. Data sets that the checkout lacks are random images. `--truth FILE` writes the
op and the lines that first make a value that is not finite from finite inputs; it is for the untraced run only.
"""
import argparse
import json
import os
import runpy
import sys
import traceback

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stand_in  # noqa: E402

DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def finite(value):
    return all(bool(t.detach().isfinite().all()) for t in torch.utils._pytree.tree_leaves(value)
               if isinstance(t, torch.Tensor) and t.is_floating_point())


class First(TorchDispatchMode):
    """The first op with finite inputs and a result that is not finite."""

    def __init__(self, folder, path):
        super().__init__()
        self.folder, self.path, self.found = folder, path, False

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        before = self.found or finite((args, kwargs))
        result = function(*args, **(kwargs or {}))
        if not self.found and before and "empty" not in str(function) and not finite(result):
            self.found = True
            lines = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in traceback.extract_stack()
                     if f.filename.startswith(self.folder)]
            with open(self.path, "w", encoding="utf-8") as f:
                json.dump({"op": str(function).rsplit(".", 1)[0].replace(".", "::"), "lines": lines}, f)
        return result


def bound_grist(iterations, go_on):
    """Their scheduler ends after iterations instead of hours, and writes no files."""
    from scripts.utils import torch_utils
    left = [iterations]
    lost = []

    def loss_checker(self, loss_val, log_msg=None):
        left[0] -= 1
        if lost or not bool(loss_val.detach().isfinite().all()):
            lost.append(iterations - left[0])
        if len(lost) > go_on:
            print(f"not finite after {lost[0]} iterations", flush=True)
            sys.exit(0)
        if left[0] <= 0:
            print(f"finite for {iterations} iterations: {float(loss_val.detach().sum())!r}", flush=True)
            sys.exit(0)

    torch_utils.TorchScheduler.loss_checker = loss_checker
    torch_utils.TorchScheduler.check_time = lambda self: None


def prepare(checkout, script, iterations, go_on):
    """Their own modules importable; stand-ins for plots, data sets and TrainCheck's markers."""
    sys.path[:0] = [os.path.dirname(script), checkout]
    os.chdir(os.path.dirname(script))
    if os.path.isdir(os.path.join(checkout, "scripts", "utils")):
        bound_grist(iterations, go_on)
    stand_in.module("matplotlib", pyplot=stand_in.module("matplotlib.pyplot"))
    stand_in.module("traincheck", annotate_stage=lambda _: None,
                    instrumentor=stand_in.module("traincheck.instrumentor", meta_vars={}))
    import torchvision
    torchvision.datasets.MNIST = torchvision.datasets.FashionMNIST = stand_in.RandomImages


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout")
    parser.add_argument("script")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32")
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--go-on", type=int, default=0, help="iterations after the first loss that is not finite")
    parser.add_argument("--truth", default="")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, arguments = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1:]
    script = os.path.join(os.path.abspath(options.checkout), options.script)
    truth = os.path.abspath(options.truth) if options.truth else ""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    sys.argv = [script, *arguments]
    prepare(os.path.abspath(options.checkout), script, options.iterations, options.go_on)
    modes = [torch.autocast("cpu", dtype=DTYPES[options.dtype], cache_enabled=False)] if DTYPES[options.dtype] else []
    modes += [First(os.path.dirname(script), truth)] if truth else []
    for mode in modes:
        mode.__enter__()
    runpy.run_path(script, run_name="__main__")


main()
