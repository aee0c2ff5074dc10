"""A moving average of the weights in fp16. https://github.com/OpenNMT/OpenNMT-py/pull/1294"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training

FIRST, DECAY = 100_000, 1e-4  # the training goes on from this step


class Average:
    def __init__(self, parameters, kind):
        self.kind, self.values = kind, [p.detach().to(kind).clone() for p in parameters]

    def update(self, parameters, step):
        decay = max(DECAY, 1 - (step + 1) / (step + 10))
        for i, p in enumerate(parameters):
            self.values[i] = (1 - decay) * self.values[i] + p.detach().to(self.kind) * decay


run = Training()
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)).half()
masters = [p.detach().float().clone() for p in model.parameters()]
optimizer = torch.optim.AdamW(masters, lr=1e-2)
average = Average(model.parameters(), torch.float32 if run.fixed else torch.float16)
start = [value.clone() for value in average.values]
for step in range(run.steps):
    x = run.normal(64, 16)
    loss = F.mse_loss(model(x.half()).float(), x.roll(1, 1))
    model.zero_grad()
    (64 * loss).backward()
    for m, p in zip(masters, model.parameters()):
        m.grad = p.grad.float() / 64
    optimizer.step()
    with torch.no_grad():
        for m, p in zip(masters, model.parameters()):
            p.copy_(m)
    average.update(model.parameters(), FIRST + step)
    run.note(loss)
still = sum((a == b).sum().item() for a, b in zip(start, average.values)) / sum(map(torch.numel, start))
print(f"{still:.1%} of the average stands still")
run.end(still > 0.5, [*masters, *average.values])
