"""DataLoader workers import torch, and so load the adapter, but train nothing: they are disarmed."""
import functools

from . import say


def install(torch, ops):
    worker = torch.utils.data._utils.worker
    original = worker._worker_loop

    # functools.wraps keeps the name under which spawn and forkserver pickle it: the child finds its own
    # wrapper.
    @functools.wraps(original)
    def worker_loop(*arguments, **named):
        say.guarded("disarm", ops.disarm, "DataLoader worker")
        return original(*arguments, **named)

    worker._worker_loop = say.unseen(worker_loop)
