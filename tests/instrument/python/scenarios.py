"""Small trainings, run with and without mp-trace's Python part: their output must be the same.

`scenarios.py [NAME ...]` prints a line for each. Before each it writes the scenario's name to $STUB_CALLS,
so that the test can assign the calls to scenarios.
"""
import gc
import os
import sys
import tempfile
import traceback
import warnings

import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

IS_2 = torch.__version__.startswith("2")
warnings.simplefilter("always")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(self.linear(x)).relu()


class Net(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.register_buffer("mask", torch.ones(4))
        self.checkpointed = checkpointed

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return (x * self.mask).pow(2).mean()


def net(**arguments):
    torch.manual_seed(0)
    return Net(**arguments)


def data():
    return torch.randn(3, 4)


def value(tensor):
    return float(tensor.detach()).hex()


def backward(model, optimizer):
    optimizer.zero_grad()
    loss = model(data())
    loss.backward()
    return loss


def digest(model):
    return value(sum(p.double().sum() for p in model.parameters()))


def plain():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(3):
        backward(model, optimizer)
        optimizer.step()
        scheduler.step()
    return digest(model)


def closure():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = [value(optimizer.step(lambda: backward(model, optimizer))),
              value(optimizer.step(closure=lambda: backward(model, optimizer)))]
    return losses, digest(model)


def lbfgs():
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    for _ in range(2):
        optimizer.step(lambda: backward(model, optimizer))
    return digest(model)


def two_optimizers():
    one, other = net(), Block()
    first = torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9)
    second = torch.optim.Adam(other.parameters(), lr=0.1)
    for _ in range(2):
        first.zero_grad()
        second.zero_grad()
        one(other(data())).backward()
        second.step()
        first.step()
    return digest(one), digest(other)


def in_turn(*turns, both_take_part=False):
    """Models, each with its optimizer; `turns` are (which of them, how many steps)."""
    models = [net() for _ in range(1 + max(which for which, _ in turns))]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
    for which, steps in turns:
        for _ in range(steps):
            backward(models[which], optimizers[which])
            if both_take_part:
                backward(models[1 - which], optimizers[1 - which])
            optimizers[which].step()
    return [digest(m) for m in models]


def alternating():
    return in_turn(*[(0, 1), (1, 5)] * 6)


def in_phases():
    return in_turn(*[(0, 12), (1, 12)] * 3)


def in_blocks():
    """As a GAN that trains one network for a while, then the other: gradients reach both models."""
    return in_turn(*[(0, 20), (1, 20)] * 3, both_take_part=True)


def rounds():
    """As federated training: each model trains for a few steps in each round."""
    return in_turn(*[(0, 3), (1, 3), (2, 3)] * 3)


def one_for_each():
    """An optimizer for each parameter."""
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(6)])
    optimizers = [torch.optim.SGD([p], lr=0.1) for p in model.parameters()]
    for _ in range(3):
        model(torch.randn(3, 2)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return digest(model)


def one_after_the_other():
    return in_turn((0, 12), (1, 12))


def one_goes_on_alone():
    """As a GAN whose generator is not trained any more: gradients reach both models."""
    return in_turn((0, 6), (1, 18), both_take_part=True)


def all_weights_after_some():
    """The second optimizer has the weights of the first one too."""
    model = net()
    first, second = (torch.optim.SGD(p, lr=0.1) for p in ([*model.parameters()][:2], model.parameters()))
    for optimizer, steps in ((first, 20), (second, 20)):
        for _ in range(steps):
            backward(model, second)
            optimizer.step()
    return digest(model)


def one_is_gone():
    models = [net(), net()]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
    while optimizers:
        optimizer = optimizers.pop()
        for _ in range(2):
            backward(models[len(optimizers)], optimizer)
            optimizer.step()
    return [digest(m) for m in models]


class Around(torch.optim.Optimizer):
    """As libraries wrap: an Optimizer that holds another one."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    @torch.no_grad()
    def step(self, closure=None):
        return self.inner.step(closure)


class TwiceDerived(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


def nested():
    model = net()
    for optimizer in (Around(torch.optim.Adam(model.parameters())), TwiceDerived(model.parameters(), lr=0.1)):
        for _ in range(2):
            backward(model, optimizer)
            optimizer.step()
    return digest(model)


class Failing(torch.optim.SGD):
    failures = 1

    def step(self, closure=None):
        if self.failures:
            self.failures -= 1
            raise ValueError("not yet")
        return super().step(closure)


def raising_step():
    model = net()
    optimizer = Failing(model.parameters(), lr=0.1)
    said = []
    for _ in range(3):
        backward(model, optimizer)
        try:
            optimizer.step()
        except ValueError as error:
            said.append("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    return said, digest(model)


def raising_forward():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    said = []
    for width in (4, 5, 4):
        try:
            model(torch.ones(2, width)).backward()
            optimizer.step()
        except RuntimeError as error:
            said.append("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    return said, digest(model)


def checkpointed():
    model = net(checkpointed=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    backward(model, optimizer)
    optimizer.step()
    return digest(model)


def names_clash():
    torch.manual_seed(0)
    one, other, loose = Block(), Block(), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([{"params": one.parameters()}, {"params": [*other.parameters(), loose]}], lr=0.1)
    (other(one(data())).sum() + loose.sum()).backward()
    optimizer.step()
    return digest(one)


def teacher_first():
    teacher, model = net(), net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        (teacher(data()).detach() - model(data())).pow(2).backward()
        optimizer.step()
    return digest(model)


def outer_later():
    model = net()
    model.blocks[0](data())
    nn.MSELoss()(model(data()), torch.zeros(()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    backward(model, optimizer)
    optimizer.step()
    return digest(model)


class Halved(nn.Module):
    def forward(self, weight):
        return weight / 2


def parametrized():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    parametrize.register_parametrization(model[0], "weight", Halved())  # calls it once
    model(data()).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return digest(model)


def fused():
    out = []
    for options in ({"foreach": True}, {"fused": True}):
        model = net()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, **options)
        backward(model, optimizer)
        optimizer.step()
        out.append(digest(model))
    return out


def _scaled(model, optimizer, scaler, bad=(), unscale=False):
    scales = []
    for step in range(5):
        optimizer.zero_grad()
        loss = model(data())
        scaler.scale(loss * float("inf") if step in bad else loss).backward()
        if unscale:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales, digest(model)


def scaler():
    model = net()
    return _scaled(model, torch.optim.SGD(model.parameters(), lr=0.1),
                   torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2), bad=(0, 3), unscale=True)


def scaler_fused():
    model = net()
    return _scaled(model, torch.optim.AdamW(model.parameters(), lr=0.1, fused=True),
                   torch.amp.GradScaler("cpu", init_scale=1024.0), bad=(1,))


def scaler_off():
    model = net()
    return _scaled(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu", enabled=False))


class OwnScaler(torch.amp.GradScaler if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler):
    def scale(self, outputs):
        return super().scale(outputs)

    def step(self, optimizer, *arguments, **named):
        return super().step(optimizer, *arguments, **named)


def scaler_derived():
    model = net()
    scaler = OwnScaler("cpu", init_scale=16.0)
    scaled = scaler.scale([model(data()), (model(data()),)])
    sum([scaled[0], scaled[1][0]]).backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.step(optimizer)
    scaler.update()
    return digest(model)


def scaler_sharded():
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
    group()
    model = net()
    return _scaled(model, torch.optim.SGD(model.parameters(), lr=0.1),
                   ShardedGradScaler("cpu", init_scale=64.0, process_group=torch.distributed.group.WORLD), bad=(2,))


def group():
    if not torch.distributed.is_initialized():
        store = torch.distributed.FileStore(tempfile.mktemp(), 1)
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)


def zero():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    group()
    model = nn.parallel.DistributedDataParallel(net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    for _ in range(2):
        backward(model, optimizer)
        optimizer.step()
    return digest(model)


def fsdp2():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    group()
    model = net()
    mesh = init_device_mesh("cpu", (1,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = backward(model, optimizer)
        optimizer.step()
    return value(loss)


def modes():
    from torch.utils._python_dispatch import TorchDispatchMode
    seen = []

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            seen.append(str(function))
            return function(*arguments, **(named or {}))

    from torch.overrides import TorchFunctionMode

    class Function(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), named=None):
            seen.append(getattr(function, "__name__", str(function)))
            return function(*arguments, **(named or {}))

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Dispatch():
        backward(model, optimizer)
        optimizer.step()
    if IS_2:  # in 1.13 a mode of Python takes other ways
        with Function():
            backward(model, optimizer)
            optimizer.step()
    return seen, digest(model)


def traced():
    model = net()
    graph = torch.jit.trace(model, torch.ones(2, 4), check_trace=False)
    symbolic = torch.fx.symbolic_trace(model.blocks[0])
    return str(graph.inlined_graph), symbolic.code, value(graph(torch.ones(2, 4)))


def functional():
    from torch.func import functional_call, grad, vmap
    model = net()
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    each = vmap(grad(lambda p, x: functional_call(model, p, (x,))), in_dims=(None, 0))(parameters, torch.ones(5, 2, 4))
    return value(sum(g.double().sum() for g in each.values()))


def compiled():
    out = []
    graphs = []

    def backend(module, inputs):
        graphs.append(str(module.graph))
        return module.forward

    for build in (lambda m: torch.compile(m, backend=backend, fullgraph=True),
                  lambda m: (m.compile(backend=backend), m)[1],
                  lambda m: torch.compile(backend=backend)(lambda x: m(x) + 1)):
        torch._dynamo.reset()
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        backward(build(model), optimizer)
        optimizer.step()
        out.append(digest(model))
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1))
    backward(model, optimizer)
    torch.compile(optimizer.step, backend=backend)()
    return out, len(graphs), [g.count("\n") for g in graphs[:3]], digest(model)


IN_BOTH = (plain, one_after_the_other, one_is_gone, alternating, in_phases, in_blocks, rounds, one_for_each, closure,
           lbfgs, two_optimizers, nested, raising_step, raising_forward, checkpointed, names_clash, teacher_first,
           outer_later, parametrized, zero, one_goes_on_alone, all_weights_after_some, modes, traced)
IN_2 = (fused, scaler, scaler_fused, scaler_off, scaler_derived, scaler_sharded, fsdp2, functional, compiled)


def main(scenarios):
    for scenario in scenarios:
        if sys.argv[1:] and scenario.__name__ not in sys.argv[1:]:
            continue
        if "STUB_CALLS" in os.environ:
            with open(os.environ["STUB_CALLS"], "a", encoding="utf-8") as out:
                out.write(f'["scenario", "{scenario.__name__}"]\n')
        torch.manual_seed(1)
        gc.collect()  # models of the last one, which would keep their names
        print(scenario.__name__, scenario(), value(torch.rand(())), flush=True)


if __name__ == "__main__":
    main(IN_BOTH + (IN_2 if IS_2 else ()))
