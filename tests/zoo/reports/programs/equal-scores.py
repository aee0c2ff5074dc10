"""Scores are normalized with an epsilon of 1e-8 in fp16. https://github.com/lightonai/pylate/issues/239"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

TOKENS, DOCUMENTS, WIDTH = 8, 4, 32


class Distillation(nn.Module):
    """A divergence between a teacher's scores and late-interaction scores, which are moved to [0, 1] before."""

    def __init__(self, fixed):
        super().__init__()
        self.fixed = fixed

    def forward(self, query, document, teacher):
        score = torch.einsum("qsh,qdth->qdst", query, document).max(-1).values.sum(-1)
        low, high = score.min(-1, keepdim=True).values, score.max(-1, keepdim=True).values
        spread = (high - low).clamp_min(1e-3) if self.fixed else high - low + 1e-8
        score = (score - low) / spread
        return F.kl_div(F.log_softmax(score, -1).float(), F.log_softmax(teacher, -1), log_target=True,
                        reduction="batchmean")


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(64, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens):
        return F.normalize(self.head(self.words(tokens)), dim=-1)


run = Training()
encoder, criterion = Encoder(), Distillation(run.fixed)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for step in range(run.steps):
    query, document = run.integers(64, 2, TOKENS), run.integers(64, 2, DOCUMENTS, TOKENS)
    teacher = run.normal(2, DOCUMENTS)
    if step == 2:  # four times the same document
        document[0], teacher[0] = document[0, :1], 0
    with torch.autocast("cpu", dtype=torch.float16):
        loss = criterion(encoder(query), encoder(document), teacher)
    run.update(loss, optimizer, scaler)
run.end(run.lost(), encoder.parameters())
