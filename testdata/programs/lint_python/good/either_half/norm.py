import torch

import precision


def rms(x, gain):
    h = x.to(precision.LOW)
    ms = h.float().pow(2).mean(-1, keepdim=True)
    return h * torch.rsqrt(ms + 1e-5) * gain
