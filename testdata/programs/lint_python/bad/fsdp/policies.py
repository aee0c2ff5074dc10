"""Mixed-precision policies of the sharded training."""
import torch
from torch.distributed.fsdp import MixedPrecision

fp16_policy = MixedPrecision(  # expect: MP212 note
    param_dtype=torch.float16,
    reduce_dtype=torch.float32,
    buffer_dtype=torch.float32,
)

fp32_policy = MixedPrecision(
    param_dtype=torch.float32,
    reduce_dtype=torch.float32,
    buffer_dtype=torch.float32,
)
