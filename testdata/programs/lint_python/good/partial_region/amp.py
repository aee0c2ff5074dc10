import functools

import torch

half_region = functools.partial(torch.autocast, device_type="cuda", dtype=torch.float16)
