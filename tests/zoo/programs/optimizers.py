"""Trains torch's TransformerEncoder with one optimizer: optimizers.py torch.NAME | torchao.NAME | bitsandbytes.NAME."""
import torch
from torch import nn

import recipe


def find(library, name):
    if library == "torch":
        return getattr(torch.optim, name)
    if library == "torchao":
        import torchao.optim
        return getattr(torchao.optim, name)
    import bitsandbytes
    return getattr(bitsandbytes.optim, name)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(300, 64)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
        self.head = nn.Linear(64, 300)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


def main():
    run = recipe.parse()
    optimizer = find(*run.name.split(".", 1))

    def loss_of(model):
        tokens = run.integers(0, 300, 4, 32)
        return nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())

    recipe.train(run, Tagger(), loss_of, optimizer)


main()
