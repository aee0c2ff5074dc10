#!/usr/bin/env python3
"""mp_optim's steps beside PyTorch's fused ones, in one process: elements per second and the ratio.

    script/bench optimizer [--rounds N] [--elements N] [--build DIR]

CPU time of one thread, minimum over interleaved rounds. PyTorch's step is that of fp32 weights and gradients: its
weights have no copy. A step of ours with a bf16 gradient, an fp32 master and a bf16 copy moves as many bytes.
State in 8 bits is compared with bitsandbytes and torchao where they are installed: run this file with
build/zoo-venv/bin/python (tests/zoo/venv).
"""
import argparse
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def best_times(calls, rounds):
    """Seconds of each call, the minimum over rounds."""
    best = {}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            best[name] = min(best.get(name, 1e9), time.process_time() - begin)
    return best


def print_rates(title, peer, elements, best):
    print(f"| {title} | million elements/s | of {peer} |\n|---|---|---|")
    for name, seconds in best.items():
        print(f"| {name} | {elements / seconds / 1e6:,.0f} | {best[peer] / seconds:.2f} |")
    print()


def bench_8_bits(mp_optim, torch, args):
    values = torch.randn(args.elements)
    table = mp_optim.table_8bit(True)
    codes, scales = mp_optim.quantize_8bit(values, True)
    there, back = {}, {}
    try:
        import bitsandbytes.functional as bnb
        kept, state = bnb.quantize_blockwise(values, code=table, blocksize=256)
        there["bitsandbytes"] = lambda: bnb.quantize_blockwise(values, code=table, blocksize=256)
        back["bitsandbytes"] = lambda: bnb.dequantize_blockwise(kept, state)
        from torchao.optim import quant_utils as ao
        there["torchao"] = lambda: ao.quantize_8bit_with_qmap(ao.scale_tensor(values, 256)[0], table)
        back["torchao"] = lambda: ao.dequant_with_qmap(codes, table, scales)
    except ImportError as missing:
        return print(f"8 bits: {missing}")
    there["mp_optim"] = lambda: mp_optim.quantize_8bit(values, True)
    back["mp_optim"] = lambda: mp_optim.dequantize_8bit(codes, scales, True)
    for title, calls in (("to 8 bits", there), ("from 8 bits", back)):
        print_rates(title, "bitsandbytes", args.elements, best_times(calls, args.rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--build", default=os.path.join(ROOT, "build/release"))
    args = parser.parse_args()
    python = os.path.join(ROOT, ".venv/bin/python")
    if sys.prefix == sys.base_prefix and os.path.exists(python):
        os.execv(python, [python, *sys.argv])
    sys.path.insert(0, os.path.join(args.build, "lib/mp-trace/optim"))
    try:
        import mp_optim
    except ModuleNotFoundError:
        sys.exit(f"bench: no mp_optim in {args.build}; MP_TORCH=2.11 script/setup builds it, or give --build DIR")
    import torch
    torch.set_num_threads(1)

    def step_of(cls, dtype=torch.float32, **options):
        weight = torch.nn.Parameter(torch.randn(args.elements).to(dtype))
        weight.grad = torch.randn(args.elements).to(dtype) * 1e-3
        optimizer = cls([weight], lr=1e-3, **options)
        optimizer.step()
        return optimizer.step

    bf16, fp16 = torch.bfloat16, torch.float16
    tables = {
        "AdamW": (torch.optim.AdamW, mp_optim.AdamW, {}),
        "SGD with momentum": (torch.optim.SGD, mp_optim.SGD, {"momentum": 0.9}),
    }
    print(f"{time.strftime('%Y-%m-%d')}, torch {torch.__version__}, {args.elements:,} elements, 1 thread\n")
    for name, (theirs, ours, options) in tables.items():
        steps = {"torch fused, fp32": step_of(theirs, fused=True, **options), "ours, fp32": step_of(ours, **options),
                 "ours, bf16, fp32 master": step_of(ours, bf16, **options),
                 "ours, fp16, fp32 master": step_of(ours, fp16, **options),
                 "ours, bf16, fp32 master, stochastic": step_of(ours, bf16, rounding="stochastic", **options),
                 "ours, bf16, no master, stochastic":
                     step_of(ours, bf16, master=False, rounding="stochastic", **options)}
        print_rates(name, "torch fused, fp32", args.elements, best_times(steps, args.rounds))
    bench_8_bits(mp_optim, torch, args)


if __name__ == "__main__":
    main()
