"""The step clock: one before_step and one after_step per step() that the program calls.

Torch wraps the step() of every optimizer class when its first object is created (for the profiler). This wrapper goes
around torch's. A step() inside another (ZeRO's inner optimizer, wrappers that subclass Optimizer) is part of the outer
step. Registered step hooks are not enough, because they are not called when a step raises.
"""
import functools
import itertools
import threading
import weakref

from . import say
from .rests import Rests

_PATCHERS = ("_patch_step_function", "_hook_for_profile")  # torch 2.x, 1.x
_MARK = "_mptrace_counts"
_SCOPE = "(optimizer)"
_MOST_TRAININGS = 8  # that are noted: some programs make an optimizer for each step
_FEWEST_ALONE = 8    # steps of an optimizer without the first one after which it counts them; a critic makes five


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
        self._numbers = weakref.WeakKeyDictionary()  # in order of the first step
        self._next = itertools.count()
        self._counting = None  # weak reference to the first optimizer of this training
        self._made = weakref.WeakKeyDictionary()  # optimizer -> how many steps had ended when it was made
        self._ended = 0  # steps of all optimizers
        self._began = 0  # how many had ended when this training began
        self._last = weakref.WeakKeyDictionary()  # optimizer -> how many had ended after its last step
        self._rest = 0   # the most steps of others between two steps of one optimizer
        self._alone = weakref.WeakKeyDictionary()  # optimizer -> its steps since the last one of the first optimizer
        self._steps = 0  # of the first optimizer of each training
        self._trainings = 1
        self._first = True
        self._rests = Rests(ops.hidden)
        self.running = _Running()
        self.off = False

    def made(self, optimizer):
        self._ops.optimizer_made()
        self._made[optimizer] = self._ended

    def forked(self):
        """In the child of a fork, after the adapter has begun anew."""
        if len(self._made):
            self._ops.optimizer_made()

    def number(self, optimizer):
        self._rest = max(self._rest, self._ended - self._last.get(optimizer, self._ended))
        number = self._numbers.get(optimizer)
        starts_anew = number is None and (self._made.get(optimizer, 0) > self._began or
                                         self._first_one_rests(optimizer))
        if starts_anew or number != 0 and self._goes_on_alone(optimizer):
            self._begin_training()
            number = 0
        elif number is None:
            number = next(self._next)
        if number == 0:
            self._counting = weakref.ref(optimizer)
        self._numbers[optimizer] = number
        return number

    def _goes_on_alone(self, optimizer):
        """Whether the first optimizer is gone, or rests much longer than any that came back."""
        gone = self._ended > 0 and self._counting() is None
        return gone or self._alone.get(optimizer, 0) >= max(_FEWEST_ALONE, 2 * self._rest)

    def _first_one_rests(self, optimizer):
        first = self._counting() if self._counting is not None else None
        return first is not None and self._rests.first_one_rests(first, optimizer)

    def _begin_training(self):
        """The optimizer that steps now counts the steps: it was made after the first step of this training, goes on
        alone, or begins while the first one rests."""
        self._rests.training_begins()
        self._began = self._ended
        self._rest = 0
        for other in [o for o, number in self._numbers.items() if number == 0]:
            self._numbers[other] = next(self._next)
        self._trainings += 1
        if self._trainings <= _MOST_TRAININGS:
            self._ops.note("not_observed", f"a new optimizer counts the steps from step {self._steps} on: "
                                           f"training {self._trainings} of this process")

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
        step = self.running.step = Step(optimizer, self.number(optimizer))
        return step

    def begin(self, step):
        """Called when the gradients exist: at the start, or when the closure has computed them."""
        if step.began:
            return
        step.began = True
        self._names.tell([(number, o) for o, number in list(self._numbers.items())])
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
        step = Step(optimizer, self.number(optimizer))
        self.begin(step)
        self._end(step, True, scale)

    def _end(self, step, skipped, scale):
        self._ended += 1
        self._last[step.optimizer] = self._ended
        self._steps += step.number == 0
        if step.number == 0:
            self._alone.clear()
        else:
            self._alone[step.optimizer] = self._alone.get(step.optimizer, 0) + 1
        waiting = [o for o in list(self._made) if o not in self._numbers]
        self._rests.stepped(step.optimizer, step.number == 0, waiting)
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
