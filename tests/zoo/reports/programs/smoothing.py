"""Log-probabilities of all words are summed in fp16. https://github.com/huggingface/transformers/issues/10674"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WORDS, SMOOTH = 8192, 0.1


class LabelSmoother(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, logits, label):
        surprise = -F.log_softmax(logits, -1)
        if self.fixed:
            surprise = surprise.float()
        right = surprise.gather(-1, label[:, None])
        total = surprise.sum(-1, keepdim=True)
        return ((1 - SMOOTH) * right.mean() + SMOOTH * total.mean() / WORDS).float()


run = Training()
model, criterion = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, WORDS)), LabelSmoother(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(run.steps):
    tokens = run.integers(64, 32)
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(tokens)
    run.update(criterion(logits, tokens * 7), optimizer, scaler)
run.end(run.lost(), model.parameters())
