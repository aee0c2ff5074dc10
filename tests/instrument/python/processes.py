"""Processes around a training: `processes.py WHAT`, each printed result the same with and without mp-trace."""
import atexit
import io
import json
import os
import sys
import time

import torch
from torch import nn

CALLS = os.environ.get("STUB_CALLS")


def mark(text):
    if CALLS:
        with open(CALLS, "a", encoding="utf-8") as out:
            out.write(json.dumps([os.getpid(), "mark", text]) + "\n")


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return nn.Identity()(torch.tensor(float(index)))


def workers(context):
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context=context)
    print(context, sum(float(batch.sum()) for batch in loader))


def train(rank=0):
    torch.manual_seed(rank)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        optimizer.step()
    return float(loss.detach()).hex()


def spawn():
    torch.multiprocessing.spawn(train, nprocs=2)
    print("spawned")


def fork():
    child = torch.multiprocessing.get_context("fork").Process(target=train, args=(1,))
    child.start()
    child.join()
    print("forked", child.exitcode)


def exits():
    atexit.register(mark, "the user's handler")
    print(train())


def fails():
    print(train())
    raise KeyError("the program's own")


def scale():
    """HostScale compared with a GradScaler on the CPU, whose scale can be read."""
    sys.path.insert(0, sys.argv[2])
    from mptrace_shim.scalers import HostScale
    scaler = torch.amp.GradScaler("cpu", init_scale=1000.0, growth_factor=1.7, backoff_factor=0.3, growth_interval=3)
    host = HostScale(scaler)
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    wrong = []
    for step in range(400):
        weight.grad = None
        bad = step % 7 == 2 or step % 31 < 2
        scaler.scale((weight * (float("inf") if bad else 1e-30)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        host.found_inf = bad
        host.update(scaler)
        if host.value != scaler.get_scale():
            wrong.append((step, host.value, scaler.get_scale()))
    print("wrong", wrong)


def census():
    """What counting a checkpoint of 8,000 tensors costs beside saving it into memory, in time of this process."""
    sys.path.insert(0, sys.argv[2])
    from mptrace_shim import checkpoints
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(1000)])
    optimizer = torch.optim.AdamW(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    def best(call):
        times = []
        for _ in range(5):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        return min(times)

    saving = best(lambda: torch.save(state, io.BytesIO()))
    counting = best(lambda: checkpoints.census(torch, state))
    print(f"save {1e3 * saving:.1f} ms, counting {1e3 * counting:.1f} ms, {100 * counting / saving:.1f} %")


if __name__ == "__main__":
    what = sys.argv[1]
    if what in ("workers", "workers_fork"):
        for name in ("fork", "spawn", "forkserver") if what == "workers" else ("fork",):
            workers(name)
    else:
        globals()[what]()
