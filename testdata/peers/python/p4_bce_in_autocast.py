import torch
import torch.nn.functional as F


def step(net, images, labels, optimizer, scaler):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        probability = torch.sigmoid(net(images))
        loss = F.binary_cross_entropy(probability, labels)  # defect P4: MP103
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
