import torch

from base import HalfModule


class InstanceScale(HalfModule):
    def forward(self, x):
        h = x.to(self.compute_dtype)
        var = h.var(-1, keepdim=True)
        return x * torch.rsqrt(var + 1e-3)  # expect: MP405 error
