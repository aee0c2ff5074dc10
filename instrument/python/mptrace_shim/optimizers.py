"""The step clock: one before_step and one after_step per step() that the program calls.

Torch wraps the step() of every optimizer class when its first object is created (for the profiler). This wrapper goes
around torch's. A step() inside another (ZeRO's inner optimizer, wrappers that subclass Optimizer) is part of the outer
step. Registered step hooks are not enough, because they are not called when a step raises.
"""
import functools
import threading

from . import say
from .numbering import Numbering

_PATCHERS = ("_patch_step_function", "_hook_for_profile")  # torch 2.x, 1.x
_MARK = "_mptrace_counts"
_SCOPE = "(optimizer)"


class _Running(threading.local):
    def __init__(self):
        self.step = None    # the outermost step() of this thread
        self.scaler = None  # the GradScaler.step() around it


class Step:
    """One running step()."""

    def __init__(self, optimizer, number):
        self.optimizer = optimizer
        self.number = number
        self.began = False
        self.inner = []  # optimizers that step inside this one


class Steps:
    def __init__(self, torch, ops, names, scopes):
        self._torch = torch
        self._ops = ops
        self._names = names
        self._scopes = scopes
        self.on_first = []    # called after the first step
        self.on_step = []     # called after each
        self.on_closure = []  # called with each closure that is passed to a step()
        self.numbering = Numbering(ops)
        self._first = True
        self.running = _Running()
        self.off = False

    def made(self, optimizer):
        self._ops.optimizer_made()
        self.numbering.made(optimizer)

    def forked(self):
        """In the child of a fork, after the adapter has begun anew."""
        if self.numbering.forked():
            self._ops.optimizer_made()

    def fault(self, error):
        say.once("optimizers", error)
        self.off = True
        self.running.step = None

    # ---- called by the wrapper of step()

    def enter(self, optimizer):
        """The new step, or None inside another step."""
        outer = self.running.step
        if outer is not None:
            outer.inner.append(optimizer)
            return None
        step = self.running.step = Step(optimizer, self.numbering.of(optimizer))
        return step

    def begin(self, step):
        """Called when the gradients exist: at the start, or when the closure has computed them."""
        if step.began:
            return
        step.began = True
        self._names.tell(self.numbering.items())
        self._names.tell_gradients()
        self._ops.before_step(step.number)

    def leave(self, step):
        self.begin(step)
        for optimizer in [step.optimizer] + step.inner:
            self._names.tell_state(optimizer)
        skipped, scale = False, -1.0
        scaler = self.running.scaler
        if scaler is not None:
            scaler.called = True
            skipped, scale = scaler.outcome()
        self.running.step = None
        self._end(step, skipped, scale)

    def skipped(self, optimizer, scale):
        """GradScaler found an infinity and did not call step()."""
        step = Step(optimizer, self.numbering.of(optimizer))
        self.begin(step)
        self._end(step, True, scale)

    def _end(self, step, skipped, scale):
        self.numbering.stepped(step.optimizer, step.number)
        first, self._first = self._first, False
        for told in self.on_first if first else ():
            told()
        self._ops.after_step(step.number, bool(skipped), float(scale))
        for told in self.on_step:
            told()

    # ---- wrapping

    def wrap_class(self, cls):
        owner = next((c for c in cls.__mro__ if "step" in c.__dict__), None)
        if owner is None or owner is self._torch.optim.Optimizer:
            return
        original = owner.__dict__["step"]
        if getattr(original, _MARK, False) or not callable(original):
            return
        owner.step = self._wrapped(original)

    def _wrapped(self, original):
        is_compiling = self._ops.is_compiling
        steps = self

        @functools.wraps(original)
        def step(self, *arguments, **named):
            if is_compiling() or steps.off:
                return original(self, *arguments, **named)
            current = None
            try:
                current = steps.enter(self)
                if current is not None:
                    arguments, named = steps._with_closure(current, arguments, named)
            except Exception as error:
                steps.fault(error)
            in_scope = current is not None and steps._scopes.enter(_SCOPE)
            try:
                result = original(self, *arguments, **named)
            except BaseException as error:
                if current is not None:
                    steps.running.step = None
                say.hide_frame(error)
                raise
            finally:
                if in_scope:
                    steps._scopes.leave()
            if current is not None and not steps.off:
                try:
                    steps.leave(current)
                except Exception as error:
                    steps.fault(error)
            return result

        setattr(step, _MARK, True)
        return say.unseen(step)

    def _with_closure(self, step, arguments, named):
        """The arguments of step(), with the closure wrapped to call begin() when it has run."""
        in_arguments = bool(arguments) and callable(arguments[0])
        closure = arguments[0] if in_arguments else named.get("closure")
        if not callable(closure):
            self.begin(step)
            return arguments, named

        for told in self.on_closure:
            told(closure)

        @functools.wraps(closure)
        def then_begin(*inner, **inner_named):
            # The closure's ops belong to the model.
            outside = self._scopes.suspend(_SCOPE)
            try:
                result = closure(*inner, **inner_named)
            except BaseException as error:
                say.hide_frame(error)
                raise
            finally:
                outside()
            if not self.off:
                try:
                    self.begin(step)
                except Exception as error:
                    self.fault(error)
            return result

        then_begin = say.unseen(then_begin)
        if in_arguments:
            return (then_begin,) + tuple(arguments[1:]), named
        return arguments, {**named, "closure": then_begin}


def install(torch, ops, names, scopes):
    steps = Steps(torch, ops, names, scopes)
    base = torch.optim.Optimizer
    patcher = next(name for name in _PATCHERS if hasattr(base, name))
    original = getattr(base, patcher)

    @functools.wraps(original)
    def patch(self, *arguments, **named):
        result = original(self, *arguments, **named)
        say.guarded("optimizers", steps.wrap_class, type(self))
        say.guarded("optimizers", names.layers.optimizer_made, self)
        say.guarded("optimizers", steps.made, self)
        return result

    setattr(base, patcher, say.unseen(patch))
    for cls in _subclasses(base):  # of objects that existed before the install
        if getattr(cls.__dict__.get("step"), "hooked", False):
            steps.wrap_class(cls)
    return steps


def _subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
