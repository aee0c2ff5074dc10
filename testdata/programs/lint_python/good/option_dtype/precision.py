import torch

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
