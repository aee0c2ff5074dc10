import torch

import precision


def rms(x, gain):
    h = x.to(precision.LOW)
    ms = h.pow(2).mean(-1, keepdim=True)  # expect: MP405 warning
    return h * torch.rsqrt(ms + 1e-5) * gain  # expect: MP302 note
