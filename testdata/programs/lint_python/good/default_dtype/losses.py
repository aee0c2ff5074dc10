import torch

from casts import lower


def log_partition(scores):
    s = lower(scores)
    total = s.float().exp().sum(-1)
    return torch.log(total)
