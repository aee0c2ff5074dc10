"""What the programs on two ranks share: the group, a loss of what is received, and how far replicas are apart."""
import builtins
import ctypes
import gc

import torch
import torch.distributed as dist


def join(run):
    """The rank. Each has data of its own; the first one prints."""
    dist.init_process_group("gloo")
    run.generator.manual_seed(1000 + dist.get_rank())
    if dist.get_rank() > 0:
        builtins.print = lambda *_, **__: None
    return dist.get_rank()


def lose(tensor):
    """Zeroes memory as a broken transfer does: torch sees no write."""
    ctypes.memset(tensor.data_ptr(), 0, tensor.numel() * tensor.element_size())


def apart(tensors):
    """The largest difference between the ranks' values."""
    flat = torch.cat([t.detach().float().flatten() for t in tensors])
    parts = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, flat)
    return max((part - parts[0]).abs().max().item() for part in parts)


def leave():
    dist.barrier()
    gc.collect()  # what still holds the group is in cycles
    dist.destroy_process_group()
