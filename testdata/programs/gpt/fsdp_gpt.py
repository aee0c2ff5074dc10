"""Trains the small GPT sharded over ranks: fully_shard (FSDP2), or FSDP1 with --fsdp1.

    torchrun --standalone --nproc-per-node 2 fsdp_gpt.py --reduce bf16 --optimizer fused
"""
import torch
from torch import nn

from common import GPT, WIDTH, Block, MixedBlock, Run, base_parser, loss_of, make_optimizer, start_ranks, stop_ranks
from residual_cases import LlamaBlock

BF16 = torch.bfloat16


def shard(model, options, run):
    """FSDP2: every block is a group, the rest another; parameters stay fp32 shards, work is done in 16 bits."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy()
    if run.low and not options.uint8_mix:
        reduce = BF16 if options.reduce == "bf16" else torch.float32
        policy = MixedPrecisionPolicy(param_dtype=BF16, reduce_dtype=reduce)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    return fully_shard(model, mp_policy=policy)


def wrap(model, options, run):
    """FSDP1."""
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    precision = None
    if run.low:
        precision = MixedPrecision(param_dtype=BF16, buffer_dtype=torch.float32,
                                   reduce_dtype=BF16 if options.reduce == "bf16" else torch.float32,
                                   keep_low_precision_grads=options.keep_low_precision_grads)
    return FullyShardedDataParallel(model, mixed_precision=precision, auto_wrap_policy=ModuleWrapPolicy({Block, LlamaBlock}),
                                    device_id=torch.device("cpu"), use_orig_params=options.use_orig_params)


def train(options, rank):
    run = Run(options, rank)
    block = (lambda: MixedBlock(WIDTH, run.dtype(BF16))) if options.uint8_mix else \
        (lambda: LlamaBlock(norm=nn.RMSNorm)) if options.llama else None
    model = GPT(run.vocabulary, block=block)
    model = wrap(model, options, run) if options.fsdp1 else shard(model, options, run)
    name = "adamw-" + options.optimizer if options.optimizer in ("foreach", "fused") else options.optimizer
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = make_optimizer(name, trained)
    batches = run.batches()
    for step in range(run.steps):
        optimizer.zero_grad()
        inputs, targets = batches.next()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        if options.clip and not options.keep_low_precision_grads:
            if options.fsdp1:
                model.clip_grad_norm_(options.clip)
            else:
                nn.utils.clip_grad_norm_(trained, options.clip)
        if run.updates(step):
            optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer)


def main():
    parser = base_parser(__doc__.splitlines()[0], steps=20)
    parser.add_argument("--reduce", choices=("fp32", "bf16"), default="fp32", help="type of the gradients on the wire")
    parser.add_argument("--optimizer", choices=("adamw", "foreach", "fused", "sgd"), default="adamw")
    parser.add_argument("--clip", type=float, default=0.25)
    parser.add_argument("--uint8-mix", action="store_true", help="trainable fp32 and frozen bf16 in one group")
    parser.add_argument("--llama", action="store_true", help="blocks with RMSNorm and a 16-bit residual stream")
    parser.add_argument("--fsdp1", action="store_true")
    parser.add_argument("--use-orig-params", action="store_true")
    parser.add_argument("--keep-low-precision-grads", action="store_true",
                        help="the optimizer sees 16-bit gradients; of ours only sgd can")
    options = parser.parse_args()
    if options.keep_low_precision_grads and not options.fsdp1:
        parser.error("--keep-low-precision-grads belongs to --fsdp1")
    train(options, start_ranks())
    stop_ranks()


main()
