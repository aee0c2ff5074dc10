import torch

from weights import load


def spread(path, x):
    w = load(path)
    x = x.to(w.dtype)
    var = x.var(-1)
    return x.mul(torch.rsqrt(var + 1e-3).unsqueeze(-1)) @ w  # expect: MP405 error
