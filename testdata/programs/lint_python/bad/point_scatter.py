"""Segments point clouds: messages of neighbouring points are summed into voxels."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.amp import GradScaler, autocast
from torch.nn.utils import clip_grad_norm_


class VoxelPool(nn.Module):
    """Sums point features into voxels."""

    def __init__(self, voxels: int, width: int):
        super().__init__()
        self.voxels = voxels
        self.proj = nn.Linear(width, width)

    def forward(self, points, voxel_of):
        message = self.proj(points)
        out = message.new_zeros(self.voxels, message.shape[-1])
        out.index_add_(0, voxel_of, message)  # expect: MP404 warning
        return out


class Segmenter(nn.Module):
    def __init__(self, voxels: int, width: int, classes: int):
        super().__init__()
        self.embed = nn.Linear(3, width)
        self.pool = VoxelPool(voxels, width)
        self.mlp = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, xyz, voxel_of):
        points = self.embed(xyz)
        voxels = self.pool(points, voxel_of)
        return self.mlp(torch.cat([points, voxels[voxel_of]], dim=-1))


def batches(steps: int, points: int, voxels: int, classes: int, device):
    for _ in range(steps):
        xyz = torch.rand(points, 3, device=device)
        voxel_of = torch.randint(0, voxels, (points,), device=device)
        yield xyz, voxel_of, torch.randint(0, classes, (points,), device=device)


def train(args):
    device = torch.device("cuda")
    net = Segmenter(args.voxels, 64, args.classes).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
    scaler = GradScaler("cuda")
    total, seen = 0.0, 0
    for xyz, voxel_of, target in batches(args.steps, args.points, args.voxels, args.classes, device):
        optimizer.zero_grad(set_to_none=True)
        with autocast("cuda", dtype=torch.float16):
            logits = net(xyz, voxel_of)
            loss = F.cross_entropy(logits, target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(net.parameters(), args.clip)
        scaler.step(optimizer)
        scaler.update()
        total += loss.item()
        seen += 1
        if seen % 50 == 0:
            print(f"step {seen}: loss {total / seen:.4f}")
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                "scaler": scaler.state_dict()}, args.out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--points", type=int, default=65536)
    parser.add_argument("--voxels", type=int, default=4096)
    parser.add_argument("--classes", type=int, default=13)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--out", default="segmenter.pt")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
