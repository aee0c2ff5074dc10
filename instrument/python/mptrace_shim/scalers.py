"""GradScaler: which loss was scaled, which step was skipped, and the scale.

Works for torch.amp.GradScaler (2.3+), torch.cuda.amp.GradScaler (before) and all their subclasses.
Nothing here waits for a device. On a CPU the scale and the found_inf flags are read. On a device the scale is
computed from the results that the program itself waits for (see HostScale).
"""
import functools
import math
import struct
import weakref

from . import say

_MARK = "_mptrace_wrapped"
_SCOPE = "(scaler)"


class HostScale:
    """The scale of a scaler on a device, computed on the host.

    step() shows whether there was an infinity: it calls the optimizer or not. update() is a known function of that.
    With a fused optimizer the flag stays on the device and is unknown; then the last known scale is kept until the
    program reads the scale itself.
    """

    def __init__(self, scaler):
        self.value = float(scaler._init_scale)
        self._tracker = int(scaler._init_growth_tracker)
        self.found_inf = False
        self.unsure = False

    def learn(self, value, tracker=None):
        self.value = float(value)
        if tracker is not None:
            self._tracker = int(tracker)

    def update(self, scaler):
        """Like _amp_update_scale_: products in double, stored as float."""
        if not self.unsure:
            if self.found_inf:
                self.value = _float32(self.value * scaler._backoff_factor)
                self._tracker = 0
            else:
                self._tracker += 1
                if self._tracker == scaler._growth_interval:
                    grown = _float32(self.value * scaler._growth_factor)
                    self.value = grown if math.isfinite(grown) else self.value
                    self._tracker = 0
        self.found_inf = self.unsure = False


def _float32(value):
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf


class ScaledStep:
    """One running GradScaler.step()."""

    def __init__(self, scalers, scaler, optimizer):
        self._scalers = scalers
        self._scaler = scaler
        self._optimizer = optimizer
        self.called = False  # by the optimizer's own step()
        self.scale = scalers.scale_of(scaler)

    def outcome(self):
        """(skipped, scale) when the optimizer's step() was called."""
        if not getattr(self._optimizer, "_step_supports_amp_scaling", False):
            return False, self.scale
        # A fused optimizer is always called and reads the flags itself.
        return self._scalers.found_inf(self._scaler, self._optimizer), self.scale


class Scalers:
    def __init__(self, torch, ops, steps, scopes, policies):
        self._torch = torch
        self._ops = ops
        self._steps = steps
        self._scopes = scopes
        self._policies = policies
        self._host = weakref.WeakKeyDictionary()
        self._scaling = self._updating = False  # inside a subclass's method that may call its base's

    def host(self, scaler):
        if scaler not in self._host:
            self._host[scaler] = HostScale(scaler)
        return self._host[scaler]

    def _is_on_host(self, tensor):
        return isinstance(tensor, self._torch.Tensor) and tensor.device.type == "cpu"

    def scale_of(self, scaler):
        tensor = scaler._scale
        if not self._is_on_host(tensor):
            return self.host(scaler).value
        with self._ops.internal():
            return float(tensor.item())

    def found_inf(self, scaler, optimizer):
        flags = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values()
        if all(self._is_on_host(flag) for flag in flags):
            with self._ops.internal():
                return any(flag.item() != 0 for flag in flags)
        host = self.host(scaler)
        if not host.unsure:
            host.unsure = True
            self._ops.note("not_observed", "skipped steps of a fused optimizer under GradScaler on a device")
        return False

    # ---- the wrapped methods; each gets the original and the arguments

    def scale(self, original, scaler, outputs, *arguments, **named):
        if self._scaling:
            return original(scaler, outputs, *arguments, **named)
        say.guarded("policies", self._policies.scaler, scaler)
        self._scaling = True
        try:
            result = original(scaler, outputs, *arguments, **named)
        finally:
            self._scaling = False
        if result is not outputs:
            say.guarded("GradScaler.scale", self._tell_losses, result, outputs)
        return result

    def _tell_losses(self, scaled, losses):
        if isinstance(scaled, self._torch.Tensor) and isinstance(losses, self._torch.Tensor):
            self._ops.loss(scaled, losses)
        elif isinstance(scaled, (list, tuple)) and isinstance(losses, (list, tuple)):
            for one, other in zip(scaled, losses):
                self._tell_losses(one, other)

    def step(self, original, scaler, optimizer, *arguments, **named):
        running = self._steps.running
        if not scaler._enabled or self._steps.off or running.scaler is not None or scaler._scale is None:
            return original(scaler, optimizer, *arguments, **named)
        current = say.guarded("GradScaler.step", ScaledStep, self, scaler, optimizer)
        running.scaler = current
        try:
            result = original(scaler, optimizer, *arguments, **named)
        finally:
            running.scaler = None
        if current is not None and not current.called and running.step is None:
            self.host(scaler).found_inf = True
            say.guarded("GradScaler.step", self._steps.skipped, _unwrapped(self._torch, optimizer), current.scale)
        return result

    def unscale_(self, original, scaler, *arguments, **named):
        in_scope = self._scopes.enter(_SCOPE)
        try:
            return original(scaler, *arguments, **named)
        finally:
            if in_scope:
                self._scopes.leave()

    def update(self, original, scaler, *arguments, **named):
        if self._updating:
            return original(scaler, *arguments, **named)
        self._updating = True
        in_scope = self._scopes.enter(_SCOPE)
        try:
            result = original(scaler, *arguments, **named)
        finally:
            self._updating = False
            if in_scope:
                self._scopes.leave()
        say.guarded("GradScaler.update", self._updated, scaler, arguments[0] if arguments else named.get("new_scale"))
        return result

    def _updated(self, scaler, new_scale):
        if not scaler._enabled or self._is_on_host(scaler._scale):
            return
        host = self.host(scaler)
        if new_scale is None:
            host.update(scaler)
        elif isinstance(new_scale, (int, float)):
            host.learn(new_scale)

    def get_scale(self, original, scaler, *arguments, **named):
        result = original(scaler, *arguments, **named)
        if scaler._enabled:
            say.guarded("GradScaler.get_scale", lambda: self.host(scaler).learn(result))
        return result

    def load_state_dict(self, original, scaler, state, *arguments, **named):
        result = original(scaler, state, *arguments, **named)
        if scaler._enabled:
            say.guarded("GradScaler.load_state_dict",
                        lambda: self.host(scaler).learn(state["scale"], state["_growth_tracker"]))
        return result

    # ---- wrapping

    def wrap_class(self, cls):
        for owner in cls.__mro__:
            for name in ("scale", "unscale_", "step", "update", "get_scale", "load_state_dict"):
                original = owner.__dict__.get(name)
                if callable(original) and not getattr(original, _MARK, False):
                    setattr(owner, name, self._wrapped(original, getattr(self, name)))

    @staticmethod
    def _wrapped(original, ours):
        @functools.wraps(original)
        def method(self, *arguments, **named):
            try:
                return ours(original, self, *arguments, **named)
            except BaseException as error:
                say.hide_frame(error)  # this one's
                say.hide_frame(error)  # and the one it called
                raise

        setattr(method, _MARK, True)
        return say.unseen(method)


def _unwrapped(torch, optimizer):
    for _ in range(8):  # wrappers of wrappers
        if isinstance(optimizer, torch.optim.Optimizer):
            break
        inner = getattr(optimizer, "optimizer", None)
        if inner is None:
            break
        optimizer = inner
    return optimizer


def install(torch, ops, steps, scopes, policies):
    scalers = Scalers(torch, ops, steps, scopes, policies)
    base = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
    original = base.__init__

    # A subclass may override scale() without calling ours, so its class is wrapped when an object is
    # created.
    @functools.wraps(original)
    def __init__(self, *arguments, **named):
        original(self, *arguments, **named)
        say.guarded("GradScaler", scalers.wrap_class, type(self))

    base.__init__ = say.unseen(__init__)
    scalers.wrap_class(base)
    return scalers
