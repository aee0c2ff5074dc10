"""Small trainings with wrappers, declared precisions, scopes and checkpoints, beside scenarios.py."""
import collections
import gc
import hashlib
import io
import logging
import os
import pickle
import tempfile
import traceback
import warnings

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scenarios import IS_2, Block, Net, backward, data, digest, group, main, net, value


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def one_step(model):
    optimizer = sgd(model)
    backward(model, optimizer)
    optimizer.step()
    return digest(model)


def parallel():
    group()
    return one_step(DistributedDataParallel(net()))


def late_parallel():
    """The wrapper is called from the second step on."""
    group()
    model = net()
    wrapped = DistributedDataParallel(module=model)
    return [one_step(called) for called in (model, wrapped)]


def parallel_hook():
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    group()
    model = DistributedDataParallel(net())
    model.register_comm_hook(None, default_hooks.bf16_compress_hook if IS_2 else default_hooks.allreduce_hook)
    try:
        model.register_comm_hook(None, None)
    except TypeError as error:
        return one_step(model), traceback_of(error)


def traceback_of(error):
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def wrapped_block():
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    model = net()
    model.blocks[1] = checkpoint_wrapper(model.blocks[1])
    return one_step(model)


class FabricModule(nn.Module):
    """As Lightning Fabric wraps."""

    def __init__(self, module):
        super().__init__()
        self._forward_module = module

    def forward(self, x):
        return self._forward_module(x)


def fabric():
    return one_step(FabricModule(net()))


def frozen_teacher():
    """An average of the model and a transform, called first."""
    average, transform, model = net(), nn.Sequential(nn.ReLU()), net()
    average.requires_grad_(False)
    optimizer = sgd(model)
    target = average(transform(data()))
    optimizer.zero_grad()
    (model(data()) - target).pow(2).backward()
    optimizer.step()
    return digest(model)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        return self.blocks[1](x)


def two_models():
    one, other = net(), Discriminator()
    optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.1)
    (one(data()) + other(data()).sum()).backward()
    optimizer.step()
    return digest(one), digest(other)


class Outer(nn.Module):
    """Its work is a method that is not forward()."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def training_step(self, x):
        return self.net(x) * 2

    def forward(self, x):
        return self.training_step(x)


def other_method():
    model = Outer()
    model.training_step(data())
    return value(model(data()))


def clipping():
    model = net()
    optimizer = sgd(model)
    for clip in (nn.utils.clip_grad_norm_, nn.utils.clip_grad.clip_grad_value_):
        backward(model, optimizer)
        clip(model.parameters(), 0.01)
        optimizer.step()
    same = pickle.loads(pickle.dumps(nn.utils.clip_grad_norm_)) is nn.utils.clip_grad_norm_
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        nn.utils.clip_grad_norm_((p for p in ()), 1.0)
    return same, [(os.path.basename(w.filename), w.lineno) for w in said], digest(model)


class Warning_(nn.Module):
    def forward(self, x, depth):
        warnings.warn("from a layer", stacklevel=depth)
        logging.getLogger("program").warning("from a layer", stacklevel=depth)
        return x


def whose_line():
    """Warnings and log lines name the program's lines, whatever wrappers are in between."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append((os.path.basename(record.pathname), record.lineno))
    logging.getLogger("program").addHandler(handler)
    logging.getLogger("program").propagate = False
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for depth in (1, 2, 3, 4):
            Warning_()(data(), depth)
        if IS_2:
            torch.amp.GradScaler("cuda")
        torch.cuda.amp.GradScaler()
    return [(os.path.basename(w.filename), w.lineno) for w in said], lines


def loader():
    batches = torch.utils.data.DataLoader([torch.ones(4) * i for i in range(4)], batch_size=2)
    model = net()
    optimizer = sgd(model)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
    return digest(model)


def autocast():
    model = nn.Linear(4, 4)
    optimizer = sgd(model)
    for enabled in (True, False):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = model(data()).float().sum()
            with torch.autocast("cpu", enabled=False):
                model(data())
        loss.backward()
    with torch.cpu.amp.autocast(dtype=torch.bfloat16):
        model(data())
    optimizer.step()
    return digest(model)


def scripted(x):
    with torch.cpu.amp.autocast(dtype=torch.bfloat16):
        return torch.mm(x, x.t())


def autocast_scripted():
    return value(torch.jit.script(scripted)(torch.ones(2, 2)).float().sum())


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    group()
    out = []
    for precision in (MixedPrecision(torch.bfloat16, torch.float32, torch.float32), None):
        torch.manual_seed(0)
        model = FullyShardedDataParallel(Net(), mixed_precision=precision, device_id=torch.device("cpu"),
                                         auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True)
        optimizer = sgd(model)
        optimizer.zero_grad()
        model(data()).float().backward()
        model.clip_grad_norm_(0.1)
        optimizer.step()
        out.append(digest(model))
        del model, optimizer
        gc.collect()
    return out


def late_fsdp():
    """The wrapper is called from the second step on."""
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    group()
    out = [one_step(net())]
    model = FullyShardedDataParallel(net(), mixed_precision=MixedPrecision(torch.bfloat16),
                                     device_id=torch.device("cpu"), auto_wrap_policy=ModuleWrapPolicy({Block}))
    return [*out, one_step(model)]


def late_fsdp2():
    """The model is sharded after its first step."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    group()
    model = net()
    out = [one_step(model)]
    mesh = init_device_mesh("cpu", (1,))
    for part, policy in ((model.blocks[0], MixedPrecisionPolicy(torch.bfloat16, torch.float32)),
                         (model, MixedPrecisionPolicy(torch.bfloat16))):
        fully_shard(part, mesh=mesh, mp_policy=policy)
    optimizer = sgd(model)
    model(data()).float().sum().backward()
    optimizer.step()
    return out


def fsdp2_policy():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    group()
    model = net()
    mesh = init_device_mesh("cpu", (1,))
    fully_shard(model.blocks[0], mesh=mesh,
                mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.bfloat16, False))
    fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(torch.bfloat16))
    return value(model(data()).float())


class State(collections.OrderedDict):
    """A container whose methods only the program may call."""

    def values(self):
        raise RuntimeError("values() was called")


def saved():
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    backward(model, optimizer)
    optimizer.step()
    state = State(model=model.half().state_dict(), optimizer=optimizer.state_dict(), step=3)
    state["itself"] = [state]
    out = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step_3.pt")
        torch.save(state, path)
        with open(path, "rb") as file:
            out.append(hashlib.sha256(file.read()).hexdigest())
        with open(os.path.join(folder, "module.pt"), "wb") as file:
            torch.save(net(), file)
        buffer = io.BytesIO()
        torch.save({"a": torch.ones(2, dtype=torch.float64), "b": torch.ones(2, dtype=torch.int64)}, buffer)
        out.append(hashlib.sha256(buffer.getvalue()).hexdigest())
        try:
            torch.save(lambda: 0, os.path.join(folder, "fails.pt"))
        except (pickle.PicklingError, AttributeError) as error:
            out.append(traceback_of(error).count('File "'))
    out.append(pickle.loads(pickle.dumps(torch.save)) is torch.save)
    return out


def saved_distributed():
    import torch.distributed.checkpoint as dcp
    model = net()
    one_step(model)
    with tempfile.TemporaryDirectory() as folder:
        dcp.save(model.state_dict(), checkpoint_id=os.path.join(folder, "epoch_1"), no_dist=True)
        return sorted(os.listdir(os.path.join(folder, "epoch_1")))


def compiled_scopes():
    """Clipping and autocast inside a compiled function: one graph, as without mp-trace."""
    graphs = []

    def backend(module, inputs):
        graphs.append(module.code)
        return module.forward

    model = net()
    backward(model, sgd(model))

    def work(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x.t()
        nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
        return y

    torch.compile(work, backend=backend)(torch.ones(2, 2))
    return len(graphs)


def tf32():
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "ieee"  # RNNs keep theirs, so there is no one switch of cuDNN's
    return torch.backends.cuda.matmul.fp32_precision, one_step(net())


# tf32 is the first in 2.x, because the switches are recorded after the first step of a process.
IN_BOTH = (parallel, parallel_hook, late_parallel, wrapped_block, fabric, frozen_teacher, two_models, other_method,
           clipping, whose_line, loader, autocast, autocast_scripted, saved)
IN_2 = (fsdp, fsdp2_policy, late_fsdp, late_fsdp2, saved_distributed, compiled_scopes)

if __name__ == "__main__":
    main(((tf32,) + IN_BOTH + IN_2) if IS_2 else IN_BOTH)
