import torch


class Config:
    width = 256
    dtype = torch.float16
    eps = 1e-8
