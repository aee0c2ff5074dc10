import torch
from torch import nn


class Matcher(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.features = nn.Linear(784, width)
        self.score = nn.Linear(width, 1)
        self.loss = nn.BCELoss()

    def forward(self, image, label):
        hidden = torch.relu(self.features(image))
        return self.loss(torch.sigmoid(self.score(hidden)), label)  # expect: MP103 error
