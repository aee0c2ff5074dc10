"""Trains a two-dimensional segmentation network with automatic mixed precision."""
import argparse
import logging

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.cuda.amp import GradScaler
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger(__name__)


class DoubleConv(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.layers(x)


class SmallUNet(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.enter = DoubleConv(3, 32)
        self.down = DoubleConv(32, 64)
        self.up = nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.leave = DoubleConv(64, 32)
        self.head = nn.Conv2d(32, classes, 1)

    def forward(self, x):
        skip = self.enter(x)
        low = self.down(F.max_pool2d(skip, 2))
        return self.head(self.leave(torch.cat([skip, self.up(low)], dim=1)))


class Trainer:
    def __init__(self, net, args):
        self.net = net
        self.args = args
        self.optimizer = optim.RMSprop(net.parameters(), lr=args.lr, momentum=0.9)
        self.scaler = GradScaler(enabled=args.amp)

    def step(self, images, masks):
        with torch.autocast("cuda", enabled=self.args.amp):
            loss = F.cross_entropy(self.net(images), masks)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.clip()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def clip(self):
        nn.utils.clip_grad_norm_(self.net.parameters(), self.args.clip)  # expect: MP203 error

    def fit(self, loader, epochs: int):
        for epoch in range(epochs):
            total = 0.0
            for images, masks in loader:
                total += self.step(images.cuda(), masks.cuda())
            log.info("epoch %d: loss %.4f", epoch, total / max(len(loader), 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    data = TensorDataset(torch.rand(64, 3, 64, 64), torch.randint(0, 2, (64, 64, 64)))
    net = SmallUNet(2).cuda()
    Trainer(net, args).fit(DataLoader(data, batch_size=8, shuffle=True), args.epochs)


if __name__ == "__main__":
    main()
