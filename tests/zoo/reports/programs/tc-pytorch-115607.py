"""A compiled loop without a gradient in one step skips updates. https://github.com/pytorch/pytorch/issues/115607"""
import torch
from torch import nn

from training import Training

run = Training(steps=4)
model = nn.Linear(1, 1)
optimizer = torch.optim.Adam(model.parameters())
x = torch.ones(1, 1)


def train():
    for step in range(run.steps):
        optimizer.zero_grad()
        if step != 1:
            model(x).sum().backward()
        optimizer.step()


(train if run.fixed else torch.compile(train, backend="eager"))()
run.note(model(x).sum())
counter = optimizer.state[model.weight]["step"].item()
run.end(counter != run.steps - 1, model.parameters())
