"""Which optimizer counts the steps: the first one of a training, whose number is 0. The others are numbered beside it.

When a second optimizer steps while the first one rests, it may belong to the same training or to another one. Only the
steps that follow show which. Where another training is likely, the second one counts from then on; if the first one
comes back, it counts again.
"""
import itertools
import weakref

from .rests import Rests

_MOST_NOTES = 8    # some programs make an optimizer for each step
_FEWEST_ALONE = 8  # steps of an optimizer without the first one after which it counts them; a critic makes five


class Numbering:
    def __init__(self, ops):
        self._ops = ops
        self._numbers = weakref.WeakKeyDictionary()  # in order of the first step
        self._next = itertools.count()
        self._counting = None  # weak reference to the optimizer that counts
        self._has_counted = weakref.WeakKeyDictionary()  # optimizer -> the ordinal of the training in which it began to
        self._left = weakref.WeakKeyDictionary()  # optimizer -> the first step that another one counted in its place
        self._made = weakref.WeakKeyDictionary()  # optimizer -> how many steps had ended when it was made
        self._ended = 0  # steps of all optimizers
        self._began = 0  # how many had ended when this training began
        self._last = weakref.WeakKeyDictionary()  # optimizer -> how many had ended after its last step
        self._rest = 0   # the most steps of others between two steps of one optimizer
        self._row = 0    # steps of the one that counts since another one stepped
        self._alone = weakref.WeakKeyDictionary()  # optimizer -> its steps since the last one of the one that counts
        self._steps = 0  # counted
        self._trainings = 1
        self._notes = 0
        self._rests = Rests(ops.hidden)

    def made(self, optimizer):
        self._made[optimizer] = self._ended

    def forked(self):
        """In the child of a fork. Whether it has an optimizer."""
        self._alone.clear()
        return len(self._made) > 0

    def items(self):
        return [(number, optimizer) for optimizer, number in list(self._numbers.items())]

    def of(self, optimizer):
        """The number of an optimizer whose step begins."""
        self._rest = max(self._rest, self._ended - self._last.get(optimizer, self._ended))
        number = self._numbers.get(optimizer)
        if number != 0:
            self._choose(optimizer, number)
        return self._numbers[optimizer]

    def stepped(self, optimizer, number):
        self._ended += 1
        self._last[optimizer] = self._ended
        if number == 0:
            self._steps += 1
            self._row = 1 if len(self._alone) else self._row + 1
            self._alone.clear()
        else:
            self._alone[optimizer] = self._alone.get(optimizer, 0) + 1
        waiting = [o for o in list(self._made) if o not in self._numbers]
        self._rests.stepped(optimizer, number == 0, waiting)

    def tell_end(self):
        """Says whether another optimizer still steps, long after the last step of the one that counts."""
        alone = max(self._alone.values(), default=0)
        if alone >= max(_FEWEST_ALONE, 2 * self._rest):
            self._ops.note("not_observed", f"steps of another optimizer are part of step {self._steps - 1}: the last "
                                           f"{alone}, because the optimizer that counts the steps did not come back")

    def _choose(self, optimizer, number):
        if self._comes_back(optimizer):
            self._count_again(optimizer)
        elif self._is_first(optimizer, number):
            self._begin_training(optimizer)
        elif number is None:
            self._numbers[optimizer] = next(self._next)
            if self._numbers[optimizer] == 0:
                self._take_over(optimizer)

    def _comes_back(self, optimizer):
        """Whether it counted before the one that counts now, which is then not of another training."""
        counting = self._counting() if self._counting is not None else None
        return counting is not None and self._has_counted.get(optimizer, self._trainings) < self._has_counted[counting]

    def _is_first(self, optimizer, number):
        """Whether a training begins with this step."""
        if self._counting is None:
            return False
        made_later = number is None and self._made.get(optimizer, 0) > self._began
        first = self._counting()
        if made_later or first is None:
            return True
        if number is None and self._rests.first_one_rests(first, optimizer):
            return True
        return self._goes_on_alone(first, optimizer)

    def _goes_on_alone(self, first, optimizer):
        """Whether the one that counts rests much longer than any that came back, and than its last row of steps.

        Networks that are trained in turn make rows of similar lengths. An optimizer of the same weights need not wait.
        """
        alone = self._alone.get(optimizer, 0)
        if alone < max(_FEWEST_ALONE, 2 * self._rest):
            return False
        return alone >= 2 * self._row or _share_weights(first, optimizer)

    def _begin_training(self, optimizer):
        self._rest = 0
        self._trainings += 1
        self._take_over(optimizer)
        self._note(f"a new optimizer counts the steps from step {self._steps} on: training {self._trainings} of this "
                   "process")

    def _count_again(self, optimizer):
        self._take_over(optimizer)
        self._note(f"an optimizer that came back counts the steps from step {self._steps} on again: steps "
                   f"{self._left[optimizer]} to {self._steps - 1} are those of others")

    def _take_over(self, optimizer):
        """The two change their numbers."""
        self._began = self._ended
        self._row = 0
        self._rests.training_begins()
        number = self._numbers.get(optimizer)
        for other in [o for o, its in self._numbers.items() if its == 0 and o is not optimizer]:
            self._numbers[other] = number or next(self._next)
            self._left[other] = self._steps
        self._numbers[optimizer] = 0
        self._counting = weakref.ref(optimizer)
        self._has_counted.setdefault(optimizer, self._trainings)

    def _note(self, text):
        self._notes += 1
        if self._notes <= _MOST_NOTES:
            self._ops.note("not_observed", text)


def _weights_of(optimizer):
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


def _share_weights(one, other):
    return not _weights_of(one).isdisjoint(_weights_of(other))
