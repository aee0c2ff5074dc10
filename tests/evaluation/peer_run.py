"""Runs seeded_gpt.py with one other tool switched on, as its manual describes; started by peers.py.

    peer_run.py TOOL [options of seeded_gpt.py]

The tool's own output goes to standard output; lines of this script begin with "peer:".
"""
import glob
import json
import os
import subprocess
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "testdata", "programs", "numerics"))
import seeded_gpt  # noqa: E402


class Hooks:
    """The forty lines that many projects write themselves: is every output and gradient finite?"""

    def __init__(self, model):
        self.step, self.said = -1, 0
        for name, module in model.named_modules():
            if not list(module.children()):
                module.register_forward_hook(lambda m, i, o, name=name: self.look(name, "forward", o))
                module.register_full_backward_hook(lambda m, i, o, name=name: self.look(name, "backward", *o))

    def begin(self):
        self.step += 1

    def look(self, name, phase, *tensors):
        for t in tensors:
            if t is not None and not t.isfinite().all():
                self.said += 1
                if self.said == 1:
                    print(f"peer: step {self.step} {phase} {name} {t.dtype}", flush=True)

    def end(self):
        print(f"peer: {self.said} alarms")


class HuggingFace:
    def __init__(self, model):
        from transformers.debug_utils import DebugUnderflowOverflow
        self.debug = DebugUnderflowOverflow(self.watched(model))

    def begin(self):
        pass

    def watched(self, model):
        return model

    def end(self):
        pass


class HuggingFaceBlocks(HuggingFace):
    """Around what takes no padded input, as a user would try next."""

    def watched(self, model):
        return model.blocks


class Anomaly:
    def __init__(self, model):
        torch.autograd.set_detect_anomaly(True)

    def begin(self):
        pass

    def end(self):
        pass


class DebugMode:
    """A log of the ops with the norms of their results, for each step; it has no verdict, so norms are counted."""

    def __init__(self, model):
        self.mode, self.step, self.first = None, -1, ""
        self.counts = []

    def begin(self):
        from torch.utils._debug_mode import DebugMode as Mode
        self.close()
        self.step += 1
        self.mode, self.hashes = Mode(record_nn_module=True), Mode.log_tensor_hashes(hash_fn="norm")
        self.mode.__enter__()
        self.hashes.__enter__()

    def close(self):
        if self.mode is None:
            return
        self.hashes.__exit__(None, None, None)
        self.mode.__exit__(None, None, None)
        bad = [line.strip() for line in self.mode.debug_string().splitlines() if "inf" in line or "nan" in line]
        self.counts.append(len(bad))
        if bad and not self.first:
            self.first = f"step {self.step} {bad[0][:90]}"
        self.mode = None

    def end(self):
        self.close()
        print(f"peer: first: {self.first}; lines with inf or nan in each step: {self.counts}")


class Msprobe:
    """Statistics of modules and calls, then its own search for the first overflow."""

    def __init__(self, model):
        from msprobe.pytorch import PrecisionDebugger
        with open("config.json", "w", encoding="utf-8") as f:
            json.dump({"task": "statistics", "dump_path": "dump", "rank": [], "step": [], "level": "mix",
                       "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}}, f)
        self.model, self.debugger, self.running = model, PrecisionDebugger(config_path="config.json"), False

    def begin(self):
        self.close()
        self.debugger.start(model=self.model)
        self.running = True

    def close(self):
        if self.running:
            self.debugger.stop()
            self.debugger.step()
        self.running = False

    def end(self):
        self.close()
        for step in ("dump/step1", "dump/step5"):  # one as in the clean run, and the one with the overflow
            out = os.path.join("found", os.path.basename(step))
            os.makedirs(out)
            subprocess.run([os.path.join(os.path.dirname(sys.executable), "msprobe"), "overflow_check", "-i", step,
                            "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            names = [n for path in sorted(glob.glob(out + "/**/*.json", recursive=True)) for n in names_in(path)]
            print(f"peer: {os.path.basename(step)}: {', '.join(names[:2]) or 'nothing'}", flush=True)


def names_in(path):
    """The names of the nodes in an answer of overflow_check."""
    def walk(value):
        if isinstance(value, dict):
            if isinstance(value.get("op_name"), str):
                yield value["op_name"]
            for inner in value.values():
                yield from walk(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from walk(inner)
    with open(path, encoding="utf-8") as f:
        return list(walk(json.load(f)))


TOOLS = {"hooks": Hooks, "huggingface": HuggingFace, "huggingface-blocks": HuggingFaceBlocks,
         "detect_anomaly": Anomaly, "debugmode": DebugMode, "msprobe": Msprobe}


def main():
    tool = TOOLS[sys.argv.pop(1)]
    plain, plain_next, tools = seeded_gpt.GPT, seeded_gpt.Text.next, []

    def with_tool(*words, **named):
        model = plain(*words, **named)
        tools.append(tool(model))
        return model

    def next_with_tool(text):
        tools[0].begin()
        return plain_next(text)

    seeded_gpt.GPT, seeded_gpt.Text.next = with_tool, next_with_tool
    seeded_gpt.train(seeded_gpt.parse())
    tools[0].end()


main()
