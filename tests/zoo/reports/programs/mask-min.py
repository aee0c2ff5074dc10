"""The smallest fp16 number as a mask, plus scores below -16. https://github.com/huggingface/transformers/pull/17306"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WIDTH, LENGTH = 32, 12


class Attention(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.fixed = fixed

    def forward(self, x, padding):
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / WIDTH ** 0.5
        hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1) | padding[:, None]
        mask = torch.zeros(hidden.shape, dtype=torch.float16).masked_fill(hidden, torch.finfo(torch.float16).min)
        scores = scores.float() + mask.float() if self.fixed else scores + mask
        return scores.softmax(-1).to(x.dtype) @ self.value(x)


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.words, self.attention, self.head = nn.Embedding(64, WIDTH), Attention(fixed), nn.Linear(WIDTH, 8)
        with torch.no_grad():  # column 0: the query of token 0 is -40, keys of all tokens are near 6
            self.words.weight[:, 0] = 0
            self.words.weight[0] = F.one_hot(torch.tensor(0), WIDTH)
            self.attention.query.weight[:, 0] = 0
            self.attention.query.weight[0, 0] = -40
            self.attention.key.bias[0] = 6

    def forward(self, tokens):
        return self.head(self.attention(self.words(tokens), tokens == 0).mean(1))


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(run.steps):
    tokens = 1 + run.integers(63, 8, LENGTH)
    label = tokens[:, -1] % 8
    if step >= 4:  # one text is padded on its left
        tokens[0, :3] = 0
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(tokens)
    run.update(F.cross_entropy(logits.float(), label), optimizer, scaler)
run.end(run.lost(), model.parameters())
