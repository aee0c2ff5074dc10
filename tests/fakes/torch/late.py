"""The device "late" of tests/fakes/torch for a program: `import late`, then torch.device("late").

MP_LATE_DEVICE is the library, which brings the fake libcuda.so.1. Settings of the device are environment
variables: MP_FAKE_CUDA_GUARDED (the host cannot read its memory), MP_FAKE_CUDA_LATE (microseconds before each work),
MP_FAKE_CUDA (calls of the driver that fail), MP_LATE_EVENTS=never, MP_LATE_MEMORY (bytes of the device),
MP_LATE_MEMORY_OF (the rank that has no more), MP_LATE_CUDNN (it serves backwards of cuDNN), MP_LATE_TELL (at the end,
say on stderr how many bytes were in use, and how cuDNN was asked).
"""
import atexit
import contextlib
import ctypes
import os
import sys
import types
import warnings

import torch
import torch.distributed

warnings.filterwarnings("ignore", "CUDA initialization")  # the fake driver serves the device alone
_library = ctypes.CDLL(os.environ["MP_LATE_DEVICE"], ctypes.RTLD_GLOBAL)
_library.late_synchronisations.restype = _library.late_most_memory.restype = ctypes.c_uint64
_library.late_backwards.restype = ctypes.c_uint64
_library.late_waits.restype = _library.late_waited.restype = ctypes.c_bool
# The next copy or measuring kernel that a thread launches waits until another thread launches an op too; whether one
# waits now, or has waited.
next_copy_waits, next_kernel_waits = _library.late_next_copy_waits, _library.late_next_kernel_waits
waits, waited = _library.late_waits, _library.late_waited


def synchronisations():
    """How often the host has waited for the device."""
    return _library.late_synchronisations()


_python = ctypes.PyDLL(os.environ["MP_LATE_DEVICE"])
_python.late_collectives.restype = ctypes.py_object
_python.late_collectives.argtypes = [ctypes.py_object]


def _collectives(store, rank, size, timeout):
    return _python.late_collectives(torch.distributed.ProcessGroupGloo(store, rank, size, timeout))


class _Stream(torch.Stream):
    def __new__(cls, device=None, priority=0):
        return super().__new__(cls, device=torch.device("late"), priority=priority)


def _event(**options):
    return torch.Event(torch.device("late"))


_module = types.ModuleType("torch.late")
_module.Stream, _module.Event = _Stream, _event
_module.stream = lambda stream: stream or contextlib.nullcontext()
_module.current_stream = lambda device=None: torch.accelerator.current_stream()
_module.is_available = lambda: True
_module.is_initialized = lambda: True
_module.device_count = lambda: 1
_module.current_device = lambda: 0
_module.set_device = lambda device: None
_module._is_in_bad_fork = lambda: False
_module.manual_seed_all = lambda seed: _library.late_seed(ctypes.c_uint64(seed))
_module.manual_seed = _module.manual_seed_all
_module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
_module.synchronisations = synchronisations
torch.utils.rename_privateuse1_backend("late")
torch._register_device_module("late", _module)
torch.utils.generate_methods_for_privateuse1_backend(for_module=False)
if "MP_LATE_TELL" in os.environ:
    atexit.register(lambda: sys.stderr.write(
        f"late: at most {_library.late_most_memory()} bytes\n"
        "late: backwards of cuDNN: {} without TF32, {} with it; {} of the program's found it off\n".format(
            *map(_library.late_backwards, range(3)))))
torch.distributed.Backend.register_backend("late", _collectives, devices=["late"])


def loaded():
    """What torch calls when it finds this folder on PYTHONPATH (late-0.dist-info), so that programs need no import."""
