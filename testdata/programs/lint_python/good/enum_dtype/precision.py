import enum

import torch


class Precision(enum.Enum):
    FULL = torch.float32
    HALF = torch.float16
