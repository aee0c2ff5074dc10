from dataclasses import dataclass

import torch


@dataclass
class TrainConfig:
    lr: float = 1e-3
    steps: int = 100
    dtype: torch.dtype = torch.float16
