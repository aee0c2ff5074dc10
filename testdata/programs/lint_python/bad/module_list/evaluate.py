import torch

from layers import Net


def score(batches):
    net = Net(64, 4).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        return [net(x) for x in batches]
