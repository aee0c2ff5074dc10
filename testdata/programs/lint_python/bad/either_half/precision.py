import torch

LOW = torch.bfloat16 if torch.cuda.get_device_capability()[0] >= 8 else torch.float16
