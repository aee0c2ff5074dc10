"""Notes layers that torch computes by other ops in 16 bits than in fp32. The twin repeats the ops of the run, so it is
not the fp32 run in every bit there."""
import functools

from . import say, wrappers


def _is_fused(torch, dtype):
    """Whether the CPU's fused kernel of an LSTM trains in that dtype."""
    if dtype is not torch.bfloat16:
        return dtype is not torch.float16
    try:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    except (AttributeError, RuntimeError):  # an older torch
        return True


def _note(ops, layer, dtype):
    name = str(dtype).rpartition(".")[2]
    ops.note("not_observed", f"{layer}: torch computes an LSTM in {name} by other ops than in fp32, so the twin's last "
                             "bits are not those of an fp32 run")


def _of_input(torch, ops, layer, arguments):
    """Notes an LSTM with fp32 weights and a 16-bit input, under autocast: the fused kernel takes no such input."""
    data = getattr(arguments[0], "data", None) if arguments else None  # a tensor's or a packed sequence's
    dtype = getattr(data, "dtype", None)
    if dtype in (torch.float16, torch.bfloat16):
        _note(ops, layer, dtype)


def of_root(torch, ops, known, modules):
    """`modules`: (layer, module) of a model that is called for the first time."""
    for layer, module in modules:
        if not wrappers.is_a(module, ("LSTM",)):
            continue
        weight = next(module.parameters(), None)
        if weight is None or weight.device.type != "cpu":
            continue
        if not _is_fused(torch, weight.dtype):
            _note(ops, layer, weight.dtype)
        elif weight.dtype is torch.float32:
            known.at_call[id(module)] = functools.partial(
                say.guarded, "decomposed layers", _of_input, torch, ops, layer)


def install(torch, ops, known):
    known.on_root.append(lambda modules: say.guarded("decomposed layers", of_root, torch, ops, known, modules))
