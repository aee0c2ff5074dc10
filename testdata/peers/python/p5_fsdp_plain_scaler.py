import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision


def train(net, batches):
    policy = MixedPrecision(param_dtype=torch.float16, reduce_dtype=torch.float32)  # defect P5: MP212
    net = FSDP(net, mixed_precision=policy)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    for features, target in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(features), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
