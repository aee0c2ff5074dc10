"""Trains an image classifier on Gaudi with Habana mixed precision."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn

import habana_frameworks.torch.core as htcore
from habana_frameworks.torch.hpex import hmp

HERE = os.path.dirname(os.path.abspath(__file__))


class Net(nn.Module):
    def __init__(self, classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.bn1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm2d(64)
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.head(x.mean(dim=(2, 3)))


def train_one_epoch(net, loader, optimizer, device):
    net.train()
    for images, target in loader:
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(images), target)
        loss.backward()
        htcore.mark_step()
        optimizer.step()  # expect: MP108 error
        htcore.mark_step()


@torch.no_grad()
def evaluate(net, loader, device):
    net.eval()
    right = total = 0
    for images, target in loader:
        guess = net(images.to(device)).argmax(dim=-1).cpu()
        right += (guess == target).sum().item()
        total += target.numel()
    return right / max(total, 1)


def make_loader(samples: int, batch_size: int):
    data = torch.utils.data.TensorDataset(torch.randn(samples, 3, 32, 32), torch.randint(0, 10, (samples,)))
    return torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    hmp.convert(opt_level="O1", bf16_file_path="ops_bf16.txt", fp32_file_path="ops_fp32.txt",
                isVerbose=args.verbose)
    device = torch.device("hpu")
    net = Net(10).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
    loader = make_loader(4096, args.batch_size)
    for epoch in range(args.epochs):
        train_one_epoch(net, loader, optimizer, device)
        print(f"epoch {epoch}: accuracy {evaluate(net, loader, device):.3f}")


if __name__ == "__main__":
    main()
