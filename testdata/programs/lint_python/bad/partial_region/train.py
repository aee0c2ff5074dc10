import torch
import torch.nn.functional as F

from amp import half_region


def epoch(model, optimizer, batches):
    for x, y in batches:
        with half_region():
            loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # expect: MP201 error
        optimizer.step()
