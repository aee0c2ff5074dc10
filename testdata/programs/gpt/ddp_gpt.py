"""Trains the small GPT with DistributedDataParallel under bf16 autocast.

    torchrun --standalone --nproc-per-node 2 ddp_gpt.py --hook bf16
    mpirun -np 2 python ddp_gpt.py --store /tmp/rendezvous --zero
"""
import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from common import GPT, Run, base_parser, loss_of, make_optimizer, start_ranks, stop_ranks


def add_hook(model, name, low):
    """Gradients travel in 16 bits; the fp32 run divides and adds at the same places."""
    if name == "none":
        return
    compress = {"bf16": default_hooks.bf16_compress_hook, "fp16": default_hooks.fp16_compress_hook}[name]
    model.register_comm_hook(None, compress if low else default_hooks.allreduce_hook)


def train(options, rank):
    run = Run(options, rank)
    # Looking for unused parameters is what keeps DDP from laying its buckets out anew.
    model = DistributedDataParallel(GPT(run.vocabulary, dropout=options.dropout),
                                    find_unused_parameters=options.keep_buckets)
    add_hook(model, options.hook, run.low)
    if options.zero:
        from torch.distributed.optim import ZeroRedundancyOptimizer
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=2e-3)
    else:
        optimizer = make_optimizer("adamw", model.parameters())
    batches = run.batches()
    for step in range(run.steps):
        optimizer.zero_grad()
        inputs, targets = batches.next()
        with run.autocast():
            loss = loss_of(model(inputs), targets)
        loss.backward()
        if run.updates(step):
            optimizer.step()
        run.report(step, loss)
    run.finish(model, optimizer.optim if options.zero else optimizer)


def main():
    parser = base_parser(__doc__.splitlines()[0], steps=20)
    parser.add_argument("--hook", choices=("none", "bf16", "fp16"), default="none")
    parser.add_argument("--zero", action="store_true", help="shard the optimizer state (ZeroRedundancyOptimizer)")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--store", default="", help="file for the rendezvous, where no launcher offers one")
    parser.add_argument("--keep-buckets", action="store_true",
                        help="gradients stay in the order of the parameters instead of that of their arrival")
    options = parser.parse_args()
    train(options, start_ranks(options.store))
    stop_ranks()


main()
