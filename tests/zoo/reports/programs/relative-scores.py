"""Two kinds of scores are added before they are divided. https://github.com/wenet-e2e/wenet/issues/891"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WIDTH, LENGTH = 64, 24


def sinusoids():
    rates = 10000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    angle = torch.arange(LENGTH)[:, None] * rates
    return torch.cat((angle.sin(), angle.cos()), 1)


class RelativeAttention(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.place, self.fixed = nn.Linear(WIDTH, WIDTH, bias=False), fixed
        self.by_content, self.by_place = (nn.Parameter(0.1 * torch.randn(WIDTH)) for _ in range(2))
        self.register_buffer("table", sinusoids())

    def forward(self, x):
        query, key, root = self.query(x), self.key(x).transpose(-2, -1), WIDTH ** 0.5
        place = self.place(self.table).T
        content, position = query + self.by_content, query + self.by_place
        if self.fixed:
            scores = (content / root) @ key + (position / root) @ place
        else:
            scores = (content @ key + position @ place) / root
        return scores.softmax(-1) @ self.value(x)


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.words, self.attention, self.head = nn.Embedding(64, WIDTH), RelativeAttention(fixed), nn.Linear(WIDTH, 8)
        with torch.no_grad():  # token 0 has queries and keys of 28, and places are near 10.5 in each column
            self.words.weight[:, 0] = 0
            self.words.weight[0] = F.one_hot(torch.tensor(0), WIDTH)
            self.attention.query.weight[:, 0] = self.attention.key.weight[:, 0] = 28
            self.attention.place.weight.normal_(std=0.02)
            self.attention.place.weight[:, -1] = 10.5

    def forward(self, tokens):
        return self.head(self.attention(self.words(tokens)).mean(1))


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(run.steps):
    tokens = 1 + run.integers(63, 8, LENGTH)
    label = tokens[:, 0] % 8
    if step >= 4:
        tokens[:, 5] = 0
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(tokens)
    run.update(F.cross_entropy(logits.float(), label), optimizer, scaler)
run.end(run.lost(), model.parameters())
