"""Tables of a rotary embedding that are made in bf16. https://github.com/huggingface/transformers/issues/25681"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

WIDTH, LENGTH = 32, 512


def angles(kind):
    rates = 1 / 10000 ** (torch.arange(0, WIDTH, 2).float() / WIDTH)
    angle = torch.einsum("i,j->ij", torch.arange(LENGTH, dtype=kind), rates.to(kind))
    return torch.cat((angle, angle), -1)


class Rotary(nn.Module):
    def __init__(self, kind):
        super().__init__()
        angle = angles(kind)
        self.register_buffer("cosine", angle.cos().bfloat16())
        self.register_buffer("sine", angle.sin().bfloat16())

    def forward(self, x):
        first, second = x.chunk(2, -1)
        return x * self.cosine + torch.cat((-second, first), -1) * self.sine


class Attention(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rotary = Rotary(kind)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(self.rotary(self.query(x)), self.rotary(self.key(x)), self.value(x))


class Model(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words, self.attention, self.head = nn.Embedding(64, WIDTH), Attention(kind), nn.Linear(WIDTH, 64)

    def forward(self, tokens):
        return self.head(self.attention(self.words(tokens)))


run = Training()
model = Model(torch.float32 if run.fixed else torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(run.steps):
    tokens = run.integers(64, 1, LENGTH + 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(tokens[:, :-1])
    run.update(F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()), optimizer)
apart = (model.attention.rotary.cosine.float() - angles(torch.float32).cos()).abs().max().item()
print(f"cosines off by {apart:.4g}")
run.end(apart > 0.1, model.parameters())
