"""The training step that tests/bench/trace.py times: a GPT on the CPU, one thread, or on a GPU. Prints one JSON line
with the seconds of the fastest step after the first, or of a mean step: CPU time on the CPU, elapsed on a GPU."""
import argparse
import json
import math
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time_, width = x.shape
        q, k, v = (t.reshape(batch, time_, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        mask = torch.ones(time_, time_, dtype=torch.bool, device=x.device).triu(1)
        y = scores.masked_fill(mask, float("-inf")).softmax(-1).to(v.dtype) @ v
        x = x + self.out(y.transpose(1, 2).reshape(batch, time_, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary, width, layers, context):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))


class Hooks:
    """What people write by hand: isfinite and amax of every leaf module's output and gradient."""

    def __init__(self, model):
        self.worst = 0.0
        for module in model.modules():
            if not list(module.children()):
                module.register_forward_hook(self.forward)
                module.register_full_backward_hook(self.backward)

    def look(self, tensor):
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            if not torch.isfinite(tensor).all():
                print("non-finite")
            self.worst = max(self.worst, tensor.abs().max().item())

    def forward(self, module, inputs, output):
        self.look(output)

    def backward(self, module, inputs, outputs):
        for gradient in outputs:
            self.look(gradient)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=57)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--optimizer", choices=("foreach", "fused"), default="foreach")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda", "late"), default="cpu",
                        help="late: that of tests/fakes/torch, whose times say nothing")
    parser.add_argument("--peer", choices=("", "hooks", "anomaly", "debugmode"), default="")
    parser.add_argument("--memory", type=int, default=0, help="bytes of the GPU that torch may take")
    parser.add_argument("--off", action="store_true", help="disarm the adapter that is attached")
    parser.add_argument("--mean", action="store_true",
                        help="the mean of steps 17 to 112, three of which mp-trace samples, instead of the fastest")
    a = parser.parse_args()
    if a.mean:
        a.steps = 113
    if a.memory:
        torch.cuda.set_per_process_memory_fraction(a.memory / torch.cuda.get_device_properties(0).total_memory)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if a.off:
        torch.ops.mptrace.disarm("benchmark of the attached but idle adapter")
    model = GPT(a.vocabulary, a.width, a.layers, a.context).to(a.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, **{a.optimizer: True})
    keep = Hooks(model) if a.peer == "hooks" else None
    if a.peer == "anomaly":
        torch.autograd.set_detect_anomaly(True)

    def step():
        tokens = torch.randint(a.vocabulary, (a.batch, a.context + 1)).to(a.device)
        optimizer.zero_grad()
        with torch.autocast(a.device, dtype=torch.bfloat16, enabled=a.bf16):
            logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    if a.peer == "debugmode":
        from torch.utils._debug_mode import DebugMode
        plain = step

        def step():
            with DebugMode(record_nn_module=True) as mode:
                loss = plain()
            mode.debug_string()
            return loss

    clock = time.process_time if a.device == "cpu" else time.perf_counter  # step() ends with a read of the loss
    times, losses = [], []
    for _ in range(a.steps):
        begin = clock()
        losses.append(step())
        times.append(clock() - begin)
    seconds = sum(times[17:]) / len(times[17:]) if a.mean else min(times[1:])
    print(json.dumps({"seconds": seconds, "loss": losses[-1].hex(),
                      "losses": [loss.hex() for loss in losses],
                      "reserved": torch.cuda.max_memory_reserved() if a.device == "cuda" else 0,
                      "parameters": sum(p.numel() for p in model.parameters())}))
    del keep


main()
