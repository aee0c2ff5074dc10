"""A norm over channels with its own backward, in fp16. https://github.com/chaiNNer-org/spandrel/pull/332"""
import torch
from torch import nn
from torch.nn import functional as F

from training import Training


class OverChannels(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        centred = x - x.mean(1, keepdim=True)
        inverse = 1 / (centred.pow(2).mean(1, keepdim=True) + eps).sqrt()
        y = centred * inverse
        ctx.save_for_backward(y, inverse, weight)
        return weight.view(1, -1, 1, 1) * y + bias.view(1, -1, 1, 1)

    @staticmethod
    def backward(ctx, grad):
        y, inverse, weight = ctx.saved_tensors
        g = grad * weight.view(1, -1, 1, 1)
        gx = inverse * (g - g.mean(1, keepdim=True) - y * (g * y).mean(1, keepdim=True))
        return gx, (grad * y).sum((0, 2, 3)), grad.sum((0, 2, 3)), None


class ChannelNorm(nn.Module):
    def __init__(self, channels, fixed):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.fixed = fixed

    def forward(self, x):
        kind = torch.float32 if self.fixed else x.dtype
        return OverChannels.apply(x.to(kind), self.weight.to(kind), self.bias.to(kind), 1e-6)


class Model(nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.entry, self.norm, self.head = nn.Conv2d(3, 16, 3, padding=1), ChannelNorm(16, fixed), nn.Conv2d(16, 3, 1)
        nn.init.constant_(self.entry.bias[:1].data, 600.0)

    def forward(self, picture):
        return self.head(self.norm(self.entry(picture)))


run = Training()
model = Model(run.fixed)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
normed = []
model.norm.register_forward_hook(lambda module, inputs, result: normed.append(result.detach().abs().max().item()))
for _ in range(run.steps):
    picture = run.normal(2, 3, 24, 24)
    with torch.autocast("cpu", dtype=torch.float16):
        prediction = model(picture)
    run.update(F.mse_loss(prediction.float(), picture), optimizer)
run.end(normed[0] == 0, model.parameters())
