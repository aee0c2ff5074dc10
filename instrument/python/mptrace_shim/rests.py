"""Whether an optimizer that steps for the first time begins another training.

A script that makes all of its models first and trains them one after another looks like a GAN whose second optimizer
comes late. They differ in the gradients: those of a network that still takes part change before the other optimizer
steps, because a backward reaches them or zero_grad() clears them.
"""
import weakref

_FEWEST_ALONE = 2  # steps of the first optimizer without another one: optimizers of one iteration take turns


class Rests:
    def __init__(self, hidden):
        self._hidden = hidden  # context in which the program's modes see nothing
        self._marks = weakref.WeakKeyDictionary()  # optimizer -> its gradients after the last step of the first one
        self._alone = 0  # steps of the first optimizer since this training began; -1: others have stepped in it

    def training_begins(self):
        self._alone = 0
        self._marks.clear()

    def stepped(self, optimizer, is_first, waiting):
        """`waiting`: optimizers that exist and have not stepped yet."""
        if not is_first or self._alone < 0:
            self._alone = -1
            return
        self._alone += 1
        with self._hidden():
            for each in ([optimizer] + waiting if waiting else ()):
                self._marks[each] = _marks_of(each)

    def first_one_rests(self, first, optimizer):
        """Whether a backward has made gradients of `optimizer`, and nothing has touched those of `first`."""
        if self._alone < _FEWEST_ALONE or first not in self._marks or optimizer not in self._marks:
            return False
        with self._hidden():
            return not _touched(self._marks[first]) and _touched(self._marks[optimizer])


def _marks_of(optimizer):
    """The gradients of the first and the last parameter of each group stand for all."""
    ends = [p for group in optimizer.param_groups for p in (group["params"][:1] + group["params"][1:][-1:])]
    return [(weakref.ref(p), *_state_of(p)) for p in ends]


def _state_of(parameter):
    gradient = parameter.grad
    return (None, 0) if gradient is None else (weakref.ref(gradient), gradient._version)


def _touched(marks):
    """A gradient that was freed to be made anew by the next backward has not been touched."""
    for parameter, gradient, version in marks:
        now = parameter().grad if parameter() is not None else None
        if now is not None and (gradient is None or gradient() is not now or now._version != version):
            return True
    return False
