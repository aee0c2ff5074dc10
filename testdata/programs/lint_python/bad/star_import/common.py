import torch

HALF = torch.float16
MASKED = -1e9
