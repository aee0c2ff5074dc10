"""The small GPT of testdata/programs/gpt on GPUs or on the device of tests/fakes/torch: what gpu_test.py runs.

    torchrun --standalone --nproc-per-node 2 device_gpt.py --device cuda --parallel fsdp2
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "testdata/programs/gpt"))
from common import GPT, WIDTH, MixedBlock, Run, base_parser, loss_of, make_optimizer  # noqa: E402


def settle(math_attention):
    """What makes two runs on one GPU the same bits."""
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if math_attention:
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)


def start(device):
    """Joins the other ranks, or none where no launcher is; returns the number of this one."""
    rank = int(os.environ.get("RANK", "0"))
    if device == "cuda":
        torch.cuda.set_device(rank)
    method = "env://" if "RANK" in os.environ else "file://" + os.path.abspath("rendezvous")
    dist.init_process_group("nccl" if device == "cuda" else "cpu:gloo,late:late", init_method=method, rank=rank,
                            world_size=int(os.environ.get("WORLD_SIZE", "1")))
    return rank


def spread(model, options, low):
    """The model over the ranks, and whether the program averages the gradients itself."""
    if options.parallel.startswith("fsdp2"):
        policy = MixedPrecisionPolicy(*[torch.bfloat16] * 2 if low and options.parallel == "fsdp2" else ())
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        return fully_shard(model, mp_policy=policy)
    if options.parallel == "fsdp1":
        policy = MixedPrecision(*[torch.bfloat16] * 2) if low else None
        return FullyShardedDataParallel(model, mixed_precision=policy, use_orig_params=True)
    if options.parallel == "own":
        return model
    # Looking for unused parameters keeps DDP from laying its buckets out anew.
    model = DistributedDataParallel(model, find_unused_parameters=True)
    if options.parallel == "ddp-bf16":
        model.register_comm_hook(None, default_hooks.bf16_compress_hook if low else default_hooks.allreduce_hook)
    return model


def average(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def main():
    parser = base_parser(__doc__.splitlines()[0], steps=20)
    parser.add_argument("--attention", choices=("math", "any"), default="math")
    parser.add_argument("--device", choices=("cuda", "late"), default="cuda")
    parser.add_argument("--parallel", choices=("own", "ddp", "ddp-bf16", "fsdp1", "fsdp2", "fsdp2-mix"),
                        default="own", help="fsdp2-mix: fp32 and frozen bf16 parameters, gathered as bytes")
    options = parser.parse_args()
    settle(options.attention == "math")
    run = Run(options, start(options.device))
    here = torch.device(options.device)
    block = (lambda: MixedBlock(WIDTH, run.dtype(torch.bfloat16))) if options.parallel == "fsdp2-mix" else None
    with here:
        model = spread(GPT(run.vocabulary, attention="sdpa", block=block), options, run.low)
    optimizer = make_optimizer("adamw-fused", [p for p in model.parameters() if p.requires_grad])
    batches = run.batches()
    waits = torch.late.synchronisations if options.device == "late" else lambda: 0
    waited = waits()  # building the model copies to the CPU, which is done for the twin too
    autocast = run.low and not options.parallel.startswith("fsdp")
    for step in range(run.steps):
        inputs, targets = (t.to(here) for t in batches.next())
        optimizer.zero_grad()
        with here, torch.autocast(options.device, torch.bfloat16, enabled=autocast):
            loss = loss_of(model(inputs), targets)
        loss.backward()
        if options.parallel == "own":
            average(model)
        optimizer.step()
        run.report(step, loss)
    if options.device == "late" and run.rank == 0:
        print("the host has waited", waits() - waited, "times")  # mp-trace adds none
    run.finish(model, optimizer)
    dist.barrier()
    dist.destroy_process_group()


main()
