import torch
from torch import nn

from constants import NEG_INF, NUM_HEADS


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).half().view(x.size(0), x.size(1), NUM_HEADS, -1).chunk(3, dim=-1)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        scores = torch.where(mask, scores, NEG_INF)  # expect: MP301 error
        return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
