"""The Dice loss of fp16 outputs. https://github.com/qubvel-org/segmentation_models.pytorch/issues/463"""
import torch
from torch import nn

from training import Training


class DiceLoss(nn.Module):
    def forward(self, probability, target):
        overlap = torch.sum(probability * target)
        both = torch.sum(probability + target)
        return 1 - 2 * overlap / both.clamp_min(1e-7)


run = Training()
model, criterion = nn.Conv2d(3, 1, 3, padding=1), DiceLoss()
nn.init.constant_(model.bias, 4.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
for _ in range(run.steps):
    picture = run.normal(1, 3, 512, 512)
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(picture)
    logits = logits.float() if run.fixed else logits
    target = (picture[:, :1] > -1.5).to(logits.dtype)
    run.update(criterion(logits.sigmoid(), target), optimizer, scaler)
run.end(run.lost(), model.parameters())
