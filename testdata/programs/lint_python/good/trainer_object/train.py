import torch

from model import Matcher
from trainer import Trainer


def main(loader):
    model = Matcher()
    trainer = Trainer(model, torch.optim.AdamW(model.parameters(), lr=3e-4))
    for batch in loader:
        trainer.step(batch)
