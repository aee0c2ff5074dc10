"""Draws the programs of the zoo and writes list.txt: build/zoo-venv/bin/python draw.py [--seed N]

The query, fixed before the first run under mp-trace: from each pool, in the order of random.Random(seed).shuffle over
its sorted names, the first N whose plain fp32 training (2 steps, no mp-trace) ends with a finite loss and at most 6
million parameters. A type of model is taken once.
"""
import argparse
import math
import os
import random
import re
import resource
import runpy
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
LARGEST = 6_000_000
MEMORY = 12 << 30
SECONDS = 30

TASKS = {"causal": 30, "masked": 10, "classify": 8, "seq2seq": 12, "image": 16, "audio": 8}
FIXED = {"diffusers": [("diffusion.py", "UNet2DModel"), ("diffusion.py", "UNet2DConditionModel")],
         "peft": [("lora.py", "lora"), ("lora.py", "dora"), ("lora.py", "ia3")],
         "engines": [("engines.py", "lightning"), ("engines.py", "accelerate"), ("engines.py", "trainer")],
         "8-bit optimizers": [("optimizers.py", "torchao.AdamW8bit"), ("optimizers.py", "torchao.AdamWFp8"),
                              ("optimizers.py", "bitsandbytes.AdamW8bit")]}


def pools():
    """(group, program, names, how many)"""
    import timm
    import torch
    import torchvision
    from transformers.models.auto import modeling_auto as auto
    maps = {"causal": ("CAUSAL_LM",), "masked": ("MASKED_LM",), "classify": ("SEQUENCE_CLASSIFICATION",),
            "seq2seq": ("SEQ_TO_SEQ_CAUSAL_LM",), "image": ("IMAGE_CLASSIFICATION",),
            "audio": ("AUDIO_CLASSIFICATION", "CTC")}
    for task, count in TASKS.items():
        kinds = {k for m in maps[task] for k in getattr(auto, f"MODEL_FOR_{m}_MAPPING_NAMES")}
        yield "transformers", "hf.py", [f"{task}.{k}" for k in kinds], count
    yield "timm", "vision.py", [f"timm.{n}" for n in timm.list_models()], 30
    yield "torchvision", "vision.py", [f"torchvision.{n}" for n in
                                       torchvision.models.list_models(module=torchvision.models)], 10
    optimizers = [n for n in dir(torch.optim) if isinstance(getattr(torch.optim, n), type) and
                  issubclass(getattr(torch.optim, n), torch.optim.Optimizer)]
    yield "torch.optim", "optimizers.py", [f"torch.{n}" for n in optimizers], 10


def run_small(program, name):
    """In the child: the training, refused when the model is too large."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.path.insert(0, PROGRAMS)
    import recipe
    train = recipe.train

    def checked(run, model, *more):
        if sum(p.numel() for p in model.parameters()) > LARGEST:
            raise SystemExit("too large")
        train(run, model, *more)
        assert all(math.isfinite(loss) for loss in run.losses), "loss"

    recipe.train = checked
    sys.argv = [program, name, "--precision", "fp32", "--steps", "2"]
    runpy.run_path(os.path.join(PROGRAMS, program), run_name="__main__")


def trains(program, name):
    """"" or the reason why this name is not taken."""
    with tempfile.TemporaryDirectory() as folder:
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            for fd in (1, 2):
                os.dup2(os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), fd)
            try:
                run_small(program, name)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001
                print(f"reason: {type(error).__name__}: {error}", flush=True)
                os._exit(1)
        deadline = time.monotonic() + SECONDS
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
                return "too slow"
            time.sleep(0.01)
        if os.waitstatus_to_exitcode(ended[1]) == 0:
            return ""
        with open(os.path.join(folder, "output"), encoding="utf-8", errors="replace") as f:
            return (re.findall(r"^reason: (.*)", f.read(), re.M) or ["crashed"])[-1][:150]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=20261123)
    options = parser.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1")
    import torch._dynamo  # noqa: F401
    import transformers  # noqa: F401
    lines, taken = [], set()
    for group, program, names, count in pools():
        names = sorted(names)
        random.Random(options.seed).shuffle(names)
        tried, found = 0, []
        for name in names:
            kind = name.split(".", 1)[1]
            if len(found) == count or group == "transformers" and kind in taken:
                continue
            tried += 1
            why = trains(program, name)
            print(f"{group} {name}: {why or 'taken'}", flush=True)
            if not why:
                found.append(name)
                taken.add(kind)
        lines += [f"# {group}, {program}: {len(found)} of {len(names)} names, {tried} tried"]
        lines += [f"{group}\t{program}\t{name}" for name in sorted(found)]
    for group, pairs in FIXED.items():
        lines += [f"# {group}: all", *(f"{group}\t{program}\t{name}" for program, name in pairs)]
    with open(os.path.join(HERE, "list.txt"), "w", encoding="utf-8") as f:
        f.write(f"# Drawn by draw.py --seed {options.seed}\n" + "\n".join(lines) + "\n")


main()
