import torch
from torch.nn.utils import clip_grad_norm_


def train(net, batches, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for features, target in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(net(features), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
