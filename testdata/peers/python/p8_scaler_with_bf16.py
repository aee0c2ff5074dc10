import torch


def train(net, batches):
    if torch.cuda.get_device_capability() < (8, 0):
        raise RuntimeError("this device has no bf16")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")  # defect P8: MP208
    for features, target in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.mse_loss(net(features), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
