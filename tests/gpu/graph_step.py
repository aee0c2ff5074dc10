"""A training step captured as a CUDA graph and replayed; prints a hash of the weights after it."""
import hashlib

import torch
from torch import nn
from torch.nn import functional as F


def main():
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256), nn.LayerNorm(256), nn.Linear(256, 16))
    model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    x, y = torch.randn(64, 256, device="cuda"), torch.randint(16, (64,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    for _ in range(10):
        x.copy_(torch.randn(64, 256, device="cuda"))
        graph.replay()
    torch.cuda.synchronize()
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    print(f"loss {loss.item().hex()} weights {digest.hexdigest()[:16]}")


main()
