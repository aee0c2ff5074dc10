import torch
import torch.nn.functional as F

from config import TrainConfig


def train(model, batches, cfg: TrainConfig):
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=cfg.dtype):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def main(batches):
    model = torch.nn.Linear(8, 1).cuda()
    train(model, batches, TrainConfig())


if __name__ == "__main__":
    main([])
