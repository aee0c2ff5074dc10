"""Every second step runs without the DDP wrapper. https://x.com/jxmnop/status/1778520637193240892"""
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import pair
from training import Training

run = Training()
pair.join(run)
model = nn.Sequential(nn.Embedding(64, 32), nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
labels = torch.cat([torch.arange(4), torch.arange(4)])
for step in range(run.steps):
    runs = ddp if run.fixed or step % 2 else model
    sentences = runs(run.integers(64, 8, 12)).mean(1)
    run.update(F.cross_entropy(sentences @ sentences.T, labels), optimizer)
run.end(pair.apart(model.parameters()) > 0, model.parameters())
pair.leave()
