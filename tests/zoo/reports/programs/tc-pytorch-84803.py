"""One rank receives zeros for a part of the gradient. https://github.com/pytorch/pytorch/issues/84803"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import pair
from training import Training

run = Training()
rank = pair.join(run)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def reduce(_, bucket):
    """Averages the bucket; in step 5 what rank 1 receives is lost."""
    parts = bucket.buffer() / dist.get_world_size()

    def received(future):
        whole = future.value()[0]
        if len(run.losses) == 5 and rank == 1 and not run.fixed:
            pair.lose(whole)
        return whole

    return dist.all_reduce(parts, async_op=True).get_future().then(received)


ddp.register_comm_hook(None, reduce)
for step in range(run.steps):
    x = run.normal(8, 16)
    run.update(F.mse_loss(ddp(x), x.roll(1, 1)), optimizer)
run.end(pair.apart(model.parameters()) > 0, model.parameters())
pair.leave()
