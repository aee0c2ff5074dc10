"""Ranks of the device of tests/fakes/torch that gather lists and whole tensors, sum and broadcast. Rank 0 prints what
came out."""
import os

import torch
import torch.distributed as dist


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("cpu:gloo,late:late")
    for step in range(3):
        values = torch.full((1 << 14,), 0.1 + rank + step, device="late").bfloat16()
        parts = [torch.empty_like(values) for _ in range(size)]
        dist.all_gather(parts, values)
        dist.all_reduce(values)
        whole = torch.empty(size << 14, dtype=torch.bfloat16, device="late")
        dist.all_gather_into_tensor(whole, values)
        dist.broadcast(whole, 0)
        if rank == 0:
            print(step, *(p.float().mean().item().hex() for p in (*parts, whole)))
    dist.barrier()
    dist.destroy_process_group()


main()
