import torch
import torch.nn.functional as F

from config import TrainConfig


def train(model, batches, cfg: TrainConfig):
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=cfg.dtype):
            loss = F.mse_loss(model(x), y)
        loss.backward()  # expect: MP201 warning
        optimizer.step()


def main(batches):
    model = torch.nn.Linear(8, 1).cuda()
    train(model, batches, TrainConfig())


if __name__ == "__main__":
    main([])
