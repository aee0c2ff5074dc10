import torch
from torch import nn


class HalfModule(nn.Module):
    @property
    def compute_dtype(self):
        return torch.float16
