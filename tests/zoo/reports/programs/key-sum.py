"""The sum of all keys of linear attention in fp16. https://github.com/idiap/fast-transformers/issues/32"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WIDTH, LENGTH = 16, 8192


class LinearAttention(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.fixed = fixed
        with torch.no_grad():  # features of keys are near 0.2; the first one is 10 more where column 0 of x is 1
            self.key.bias.fill_(-1.6)
            self.key.weight[:, 0] = 0
            self.key.weight[0, 0] = 10

    def forward(self, x):
        query, key, value = self.query(x), self.key(x), self.value(x)
        with torch.autocast("cpu", enabled=not self.fixed, dtype=torch.float16):
            if self.fixed:
                query, key, value = query.float(), key.float(), value.float()
            query, key = F.elu(query) + 1, F.elu(key) + 1
            both = torch.einsum("nsd,nsm->ndm", key, value)
            scale = 1 / (torch.einsum("nld,nd->nl", query, key.sum(1)) + 1e-6)
            return torch.einsum("nld,ndm,nl->nlm", query, both, scale)


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.attention, self.head = LinearAttention(fixed), nn.Linear(WIDTH, 8)

    def forward(self, x):
        return self.head((x + self.attention(x)).mean(1))


run = Training(steps=8)
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(run.steps):
    x = run.normal(1, LENGTH, WIDTH)
    x[..., 0] = 1.0 if step >= 4 else 0.0
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(x)
    run.update(F.cross_entropy(logits.float(), run.integers(8, 1)), optimizer)
run.end(run.lost(), model.parameters())
