import argparse

import torch
import torch.nn.functional as F

from precision import DTYPES


def run(args, model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    compute = DTYPES[args.precision]
    scaler = torch.amp.GradScaler("cuda", enabled=args.precision == "fp16")
    for x, y in batches:
        with torch.autocast("cuda", dtype=compute):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--precision", choices=["fp16", "bf16"], default="fp16")
    run(p.parse_args(), torch.nn.Linear(8, 4).cuda(), [])
