"""Trains a small classifier with Lightning in native bf16 precision."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lightning.pytorch as pl


class Mixer(nn.Module):
    """Mixes a batch of features with a learned square matrix."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) * width**-0.5)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + x @ self.weight)


class Classifier(pl.LightningModule):
    def __init__(self, width: int, classes: int, lr: float):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Sequential(nn.Linear(32, width), nn.GELU())
        self.mixer = Mixer(width)
        self.head = nn.Linear(width, classes)
        self.lr = lr

    def forward(self, x):
        return self.head(self.mixer(self.stem(x)))

    def training_step(self, batch, batch_idx):
        features, target = batch
        logits = self(features.half())  # expect: MP101 warning
        with torch.autocast(device_type="cuda", dtype=torch.float16):  # expect: MP118 warning
            similarity = torch.mm(logits, logits.t())
        penalty = similarity.float().pow(2).mean()
        loss = nn.functional.cross_entropy(logits, target) + 1e-3 * penalty
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        features, target = batch
        logits = self(features)
        accuracy = (logits.argmax(dim=-1) == target).float().mean()
        self.log("val_accuracy", accuracy)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.lr)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def loaders(batch_size: int):
    features = torch.randn(4096, 32)
    target = torch.randint(0, 10, (4096,))
    data = TensorDataset(features, target)
    train, val = torch.utils.data.random_split(data, [3584, 512])
    return (DataLoader(train, batch_size=batch_size, shuffle=True),
            DataLoader(val, batch_size=batch_size))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    train, val = loaders(args.batch_size)
    model = Classifier(args.width, 10, lr=3e-4)
    trainer = pl.Trainer(accelerator="gpu", devices=1, precision="bf16-mixed", max_epochs=args.epochs)
    trainer.fit(model, train, val)


if __name__ == "__main__":
    main()
