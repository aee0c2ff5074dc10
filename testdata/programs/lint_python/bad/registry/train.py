"""Trains a detector head; the loss comes from the package beside this file."""
import torch

import losses


def train(model, loader, optimizer, device="cuda"):
    scaler = torch.amp.GradScaler(device)
    for images, target in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            prediction = model(images.to(device))
            loss = losses.focal_loss(prediction, target.to(device))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
