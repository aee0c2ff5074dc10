"""mp_optim on a GPU: the bits of its steps on the CPU, and its rate beside torch's fused optimizers.

    MP_OPTIM=PREFIX/lib/mp-trace/optim optimizer_step.py [--device cuda] [--elements N]

Prints a line for each comparison, "ok" or "RED" first, and one for each rate.
"""
import argparse
import math
import os
import sys
import time

import torch

sys.path.insert(0, os.environ["MP_OPTIM"])
import mp_optim  # noqa: E402

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
SHAPES = [(1,), (255,), (64, 64), (9001,), (300, 1000)] + [(17,)] * 150


def trained(cls, dtype, device, steps=4, **options):
    """Weights and state after some steps; gradients, and an infinity in step 2, are the same on every device."""
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(shape).to(dtype).to(device)) for shape in SHAPES]
    optimizer = cls(weights, lr=1e-3, **options)
    counts = []
    for step in range(steps):
        for w in weights:
            w.grad = (torch.randn(w.shape) * 1e-2).to(dtype).to(device)
        optimizer.grad_scale = torch.tensor(1024.0, device=device)
        optimizer.found_inf = torch.tensor(float(step == 2), device=device)
        optimizer.step()
        counts.append(tuple(optimizer.counts))
    tensors = [w.detach().cpu() for w in weights]
    for w in weights:
        tensors += [value.cpu() for value in optimizer.state[w].values() if torch.is_tensor(value)]
    return tensors, counts


def compare(device):
    for cls in (mp_optim.AdamW, mp_optim.SGD):
        for dtype in (FP32, BF16, FP16):
            for options in ({}, {"rounding": "stochastic"}, {"master": False, "rounding": "stochastic"}):
                if cls is mp_optim.SGD:
                    options = {"momentum": 0.9, **options}
                (ours, counts), (cpu, expected) = (trained(cls, dtype, d, **options) for d in (device, "cpu"))
                good = counts == expected and all(torch.equal(a, b) for a, b in zip(ours, cpu))
                name = f"{cls.__name__} {str(dtype).removeprefix('torch.')} {options}"
                print(f"{'ok' if good else 'RED'} {name}: bits and counts {'are' if good else 'differ from'} the CPU's")


def compare_8_bits(device):
    values = torch.randn(300, 1001)
    for signed in (True, False):
        part = values if signed else values.square()
        want = mp_optim.quantize_8bit(part, signed)
        codes, scales = mp_optim.quantize_8bit(part.to(device), signed)
        kept = mp_optim.dequantize_8bit(codes, scales, signed).cpu()
        good = torch.equal(codes.cpu(), want[0]) and torch.equal(scales.cpu(), want[1])
        good = good and torch.equal(kept, mp_optim.dequantize_8bit(*want, signed))
        print(f"{'ok' if good else 'RED'} 8 bits, signed {signed}: codes and values {'are' if good else 'differ from'} "
              "the CPU's")


def rates(device, elements):
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    peer = None
    for name, cls, dtype, options in (("torch fused, fp32", torch.optim.AdamW, FP32, {"fused": True}),
                                      ("mp_optim, fp32", mp_optim.AdamW, FP32, {}),
                                      ("mp_optim, bf16, fp32 master", mp_optim.AdamW, BF16, {}),
                                      ("mp_optim, bf16, stochastic, no master", mp_optim.AdamW, BF16,
                                       {"master": False, "rounding": "stochastic"})):
        weight = torch.nn.Parameter(torch.randn(elements, device=device).to(dtype))
        weight.grad = torch.randn(elements, device=device).to(dtype) * 1e-3
        optimizer = cls([weight], lr=1e-3, **options)
        best = math.inf
        for _ in range(10):
            wait()
            begin = time.perf_counter()
            optimizer.step()
            wait()
            best = min(best, time.perf_counter() - begin)
        peer = peer or best
        print(f"rate AdamW, {name}: {elements / best / 1e9:.2f} billion elements/s, {peer / best:.2f} of torch's")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--elements", type=int, default=1 << 27)
    options = parser.parse_args()
    compare(options.device)
    compare_8_bits(options.device)
    rates(options.device, options.elements)


if __name__ == "__main__":
    main()
