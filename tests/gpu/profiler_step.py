"""Some steps of a small training inside of torch.profiler; prints each loss, and each kernel of the last step.

    profiler_step.py [--device cuda]
"""
import argparse
from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    device = parser.parse_args().device
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 16)).to(device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=False)
    x = torch.randn(32, 64).to(device, torch.bfloat16)
    y = torch.arange(32).remainder(16).to(device)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    for _ in range(3):
        with profile(activities=activities) as told:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x).float(), y)
            loss.backward()
            optimizer.step()
            print(f"loss {loss.item().hex()}")
    on_device = [e for e in told.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    events = on_device if device == "cuda" else told.events()
    for name, count in sorted(Counter(e.name for e in events).items()):
        print(f"kernel\t{name}\t{count}")


main()
