"""Which dtypes a checkpoint contains: counted after torch.save and torch.distributed.checkpoint have written it.

No code of the program runs for this: dicts, lists and modules are read directly, without calling their methods.
"""
import functools
import os
import sys

from . import say
from .ops import local_tensor
from .policies import dtype_name

_MOST = 200_000  # objects looked at; a checkpoint of 10,000 layers has about 100,000
_FEWEST = 32     # float elements: a file with less has results of the program, not its weights


def _parts_of(module_class, value):
    """The elements of `value`; () when it is not a container."""
    if isinstance(value, dict):
        return dict.values(value)
    if isinstance(value, list):
        return list.__iter__(value)
    if isinstance(value, tuple):
        return tuple.__iter__(value)
    if isinstance(value, module_class):
        own = value.__dict__
        return [*own["_parameters"].values(), *own["_buffers"].values(), *own["_modules"].values()]
    return ()


def census(torch, value):
    """{dtype: [float tensors, their elements]} of a checkpoint; the local part of a DTensor."""
    counts, seen, left = {}, set(), [value]
    for _ in range(_MOST):
        if not left:
            break
        value = left.pop()
        if value is None or isinstance(value, (str, bytes, int, float)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            tensor = local_tensor(torch, value)
            if tensor is not None and tensor.dtype.is_floating_point:
                count = counts.setdefault(tensor.dtype, [0, 0])
                count[0] += 1
                count[1] += tensor.numel()
        else:
            left.extend(_parts_of(torch.nn.Module, value))
    return counts


def name_of(file):
    """The file's name without its folder."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    if not isinstance(name, (str, os.PathLike)):
        return "(in memory)"
    return os.path.basename(os.fspath(name).rstrip("/")) if not isinstance(os.fspath(name), bytes) else "(file)"


class Checkpoints:
    def __init__(self, torch, ops):
        self._torch = torch
        self._ops = ops
        self._inside = False  # DCP's writer calls torch.save for its own parts

    def _tell(self, value, name):
        with self._ops.hidden():
            counts = census(self._torch, value)
        if sum(elements for _, elements in counts.values()) < _FEWEST:
            return
        for dtype, (tensors, elements) in sorted(counts.items(), key=lambda item: str(item[0])):
            self._ops.place("checkpoint", name, dtype_name(dtype), tensors, elements)

    def _around(self, original, describe):
        @functools.wraps(original)
        def save(*arguments, **named):
            if self._inside:
                return original(*arguments, **named)
            self._inside = True
            try:
                result = original(*arguments, **named)
            except BaseException as error:
                say.hide_frame(error)
                raise
            finally:
                self._inside = False
            say.guarded("checkpoint", lambda: self._tell(*describe(*arguments, **named)))
            return result

        return say.unseen(save)

    def install_torch(self):
        save = self._around(self._torch.save, lambda obj, f, *_, **__: (obj, name_of(f)))
        self._torch.save = self._torch.serialization.save = save

    def install_distributed(self):
        """Wraps torch.distributed.checkpoint once the program has loaded it; called from time to time."""
        saver = sys.modules.get("torch.distributed.checkpoint.state_dict_saver")
        original = getattr(saver, "_save_state_dict", None)
        if original is None or hasattr(original, "_mptrace_checkpoint"):
            return
        saver._save_state_dict = self._around(original, self._distributed)
        saver._save_state_dict._mptrace_checkpoint = True

    @staticmethod
    def _distributed(state_dict, storage_writer, *_, **__):
        # In a call by dcp.save() the writer contains the destination.
        where = getattr(storage_writer, "checkpoint_id", None) or getattr(storage_writer, "path", None)
        return state_dict, name_of(where)


def install(torch, ops):
    checkpoints = Checkpoints(torch, ops)
    checkpoints.install_torch()
    return checkpoints
