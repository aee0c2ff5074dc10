"""AdamW and SGD for weights in bfloat16 or float16: one fused op for the update and the copy.

    import mp_optim
    optimizer = mp_optim.AdamW(model.parameters(), lr=3e-4)                           # fp32 master weights
    optimizer = mp_optim.AdamW(model.parameters(), master=False, rounding="stochastic")  # no master
    optimizer.step()
    optimizer.counts    # StepCounts(elements, meant_to_move, stagnated) of the last step

Parameters may be float32, bfloat16 or float16, on the CPU or, with torch 2.11 or newer, on an NVIDIA GPU. State is
float32. With `master=True` each 16-bit parameter has a float32 master in the state, and the parameter is its rounding.
Without, the parameter is the weight itself, and what its format cannot hold is lost unless the rounding is stochastic.
`stagnated` counts the weights whose update was not 0 and that kept their bits. The ops are torch.ops.mp.adamw_ and
torch.ops.mp.sgd_.

    mp_optim.state_error(optimizer)    # what the fp32 state of any torch optimizer would lose in 8 bits
"""
import collections
import functools
import glob
import math
import os
import re
import struct
import sys

import torch

StepCounts = collections.namedtuple("StepCounts", "elements meant_to_move stagnated")


def _build_id(path):
    """The first 16 digits of a library's build id, as the names of our libraries have it."""
    with open(path, "rb") as file:
        header = file.read(64)
        (table,), (size, count) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<HH", header, 54)
        for i in range(count):
            file.seek(table + i * size)
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", file.read(size))
            if kind != 4:  # PT_NOTE
                continue
            file.seek(offset)
            note = re.search(rb"\x03\0\0\0GNU\0(.{8})", file.read(length), re.S)  # NT_GNU_BUILD_ID
            if note:
                return note.group(1).hex()
    return f"size-{os.path.getsize(os.path.realpath(path))}"


def _library():
    """The library for this torch."""
    found = glob.glob(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    found += glob.glob("/usr/lib/*/libtorch_cpu.so")
    if not found:
        raise ImportError("mp_optim: no libtorch_cpu.so beside " + torch.__file__)
    name = _build_id(found[0])
    here = os.path.dirname(os.path.abspath(__file__))
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for folder in (os.path.join(here, "../../adapters"), os.path.join(cache, "mp-trace/adapters")):
        path = os.path.join(folder, f"libmpoptim_{name}.so")
        if os.path.exists(path):
            return path
    raise ImportError(f"mp_optim: there is no library for torch {torch.__version__} ({name}); "
                      f"`mp-trace build-adapter --python {sys.executable}` builds it")


torch.ops.load_library(_library())


class _Fused(torch.optim.Optimizer):
    """What AdamW and SGD share: masters, copies, the loss scale, and counts."""

    def __init__(self, params, defaults, master, rounding):
        if rounding not in ("nearest", "stochastic"):
            raise ValueError(f'rounding is "nearest" or "stochastic", not {rounding!r}')
        if defaults["lr"] < 0 or defaults["weight_decay"] < 0:
            raise ValueError("lr and weight_decay must not be negative")
        self.master = master
        self.rounding = rounding
        self._counts = []
        # GradScaler hands its scale and its finding to the step instead of unscaling the gradients itself.
        self._step_supports_amp_scaling = not torch.__version__.startswith("1.")
        super().__init__(params, defaults)

    @property
    def counts(self):
        """StepCounts of the last step. On a GPU reading it waits for the step."""
        return StepCounts(*(sum(figures) for figures in zip((0, 0, 0), *(c.tolist() for c in self._counts))))

    def _lists(self, params):
        """masters, copies and gradients of parameters of one kind: fp32, 16-bit with a master, or without."""
        kept = [self.state[p].get("master") for p in params]
        if params[0].dtype == torch.float32:
            return params, [], [p.grad for p in params]
        return ([] if kept[0] is None else kept), params, [p.grad for p in params]

    def _prepare(self, p):
        """The state of a parameter at its first step."""
        if p.grad.is_sparse:
            raise RuntimeError("mp_optim does not support sparse gradients")
        state = self.state[p]
        if not state:
            state["step"] = 0
            if self.master and p.dtype != torch.float32:
                state["master"] = p.detach().to(torch.float32)
            self._new_state(state, p)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        found_inf = getattr(self, "found_inf", None)
        scale = {"grad_scale": getattr(self, "grad_scale", None), "found_inf": found_inf}
        skipped = found_inf is not None and found_inf.item() != 0
        self._counts = []
        for group in self.param_groups:
            alike = collections.defaultdict(list)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self._prepare(p)
                if not skipped:
                    self.state[p]["step"] += 1
                    alike[p.dtype == torch.float32, p.device, self.state[p]["step"]].append(p)
            for (_, _, number), params in alike.items():
                stochastic = self.rounding == "stochastic"
                # Drawn from torch's generator, so that torch.manual_seed() repeats a run.
                seed = int(torch.randint(1 << 62, ())) if stochastic else 0
                self._counts.append(self._update(group, params, number, stochastic=stochastic, seed=seed, **scale))
        return loss

    def load_state_dict(self, state_dict):
        # torch casts state to the parameter's dtype; masters and moments stay float32.
        super().load_state_dict(state_dict)
        saved = iter(state_dict["state"][i] for group in state_dict["param_groups"] for i in group["params"]
                     if i in state_dict["state"])
        for group in self.param_groups:
            for p in group["params"]:
                if p in self.state:
                    for name, value in next(saved).items():
                        if torch.is_tensor(value):
                            self.state[p][name] = value.to(p.device, torch.float32, copy=True)


class AdamW(_Fused):
    """torch.optim.AdamW in one pass; `decoupled=False` is torch.optim.Adam. There is no amsgrad."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, *, master=True,
                 rounding="nearest", decoupled=True, maximize=False):
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas are in [0, 1), not {betas}")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, decoupled=decoupled,
                                      maximize=maximize), master, rounding)

    def _new_state(self, state, p):
        state["exp_avg"] = torch.zeros_like(p, dtype=torch.float32)
        state["exp_avg_sq"] = torch.zeros_like(p, dtype=torch.float32)

    def _update(self, group, params, number, **options):
        means = [self.state[p]["exp_avg"] for p in params]
        squares = [self.state[p]["exp_avg_sq"] for p in params]
        beta1, beta2 = group["betas"]
        return torch.ops.mp.adamw_(*self._lists(params), means, squares, step=number, lr=float(group["lr"]),
                                   beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"], eps=group["eps"],
                                   decoupled=group["decoupled"], maximize=group["maximize"], **options)


class SGD(_Fused):
    """torch.optim.SGD in one pass."""

    def __init__(self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *, master=True,
                 rounding="nearest", maximize=False):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs a momentum and no dampening")
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov, maximize=maximize), master, rounding)

    def _new_state(self, state, p):
        state["momentum_buffer"] = torch.zeros_like(p, dtype=torch.float32)

    def _update(self, group, params, number, **options):
        momentum = group["momentum"]
        buffers = [self.state[p]["momentum_buffer"] for p in params] if momentum != 0 else []
        return torch.ops.mp.sgd_(*self._lists(params), buffers, lr=float(group["lr"]), momentum=momentum,
                                 dampening=group["dampening"], weight_decay=group["weight_decay"],
                                 nesterov=group["nesterov"], maximize=group["maximize"],
                                 is_first_step=number == 1, **options)


# ---- Optimizer state in 8 bits. ---------------------------------------------------------------------

QuantizationError = collections.namedtuple("QuantizationError", "elements nonzero lost sqnr")


@functools.lru_cache(maxsize=None)
def table_8bit(signed):
    """The 256 values in [-1, 1], or in [0, 1], that the codes of an 8-bit state stand for: float32, ascending.

    It is the dynamic map of bitsandbytes and torchao (Dettmers et al. 2021, arXiv 2110.02861): seven decades down from
    1, each cut evenly and with twice as many values as the one below, and 0 and 1."""
    values = [0.0, 1.0]
    for decade in range(7):
        edges = torch.linspace(0.1, 1, 2 ** (decade if signed else decade + 1) + 1, dtype=torch.float32)
        middles = 10 ** (decade - 6) * ((edges[:-1] + edges[1:]) / 2)
        values += middles.tolist() + ((-middles).tolist() if signed else [])
    return torch.tensor(sorted(values), dtype=torch.float32)


def quantize_8bit(tensor, signed):
    """The codes (uint8, the tensor's shape) and scales (float32, one for 256 elements) of a float32 tensor."""
    return torch.ops.mp.quantize_blockwise(tensor.contiguous(), table_8bit(signed))


def dequantize_8bit(codes, scales, signed):
    return torch.ops.mp.dequantize_blockwise(codes, scales, table_8bit(signed))


def quantization_error(tensor, signed):
    """What a float32 tensor would lose in 8 bits: QuantizationError(elements, nonzero, lost, sqnr).

    `nonzero` counts the elements that are not 0, `lost` those of them that would become 0, and `sqnr` is the ratio of
    signal to error in dB (inf: no error; nan: an element is not finite)."""
    kept = dequantize_8bit(*quantize_8bit(tensor, signed), signed)
    nonzero = tensor != 0
    signal, error = (float(x.double().square().sum()) for x in (tensor, kept - tensor))
    if not math.isfinite(signal):
        sqnr = math.nan
    else:
        sqnr = 10 * math.log10(signal / error) if error else math.inf
    return QuantizationError(tensor.numel(), int(nonzero.sum()), int((nonzero & (kept == 0)).sum()), sqnr)


def state_error(optimizer):
    """What the float32 state of any torch optimizer would lose in 8 bits: {(group, index, name): QuantizationError}.

    The index is that of the parameter in its group, the name that of the state, for example exp_avg_sq. A state without
    a negative element takes the table of unsigned values. Masters and numbers of steps are left out: the libraries keep
    them in full, as they do with tensors of fewer than 4096 elements."""
    errors = {}
    for number, group in enumerate(optimizer.param_groups):
        for index, p in enumerate(group["params"]):
            for name, value in optimizer.state.get(p, {}).items():
                is_state = torch.is_tensor(value) and value.dtype == torch.float32 and name != "master"
                if is_state and value.numel() >= 4096:
                    errors[number, index, name] = quantization_error(value, bool((value < 0).any()))
    return errors
