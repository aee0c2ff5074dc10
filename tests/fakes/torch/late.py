"""The device "late" of tests/fakes/torch for a program: `import late`, then torch.device("late").

MP_LATE_DEVICE is the library, which brings the fake libcuda.so.1. Settings of the device are environment
variables: MP_FAKE_CUDA_GUARDED (the host cannot read its memory), MP_FAKE_CUDA_LATE (microseconds before each work),
MP_FAKE_CUDA (calls of the driver that fail), MP_LATE_EVENTS=never.
"""
import ctypes
import os
import types
import warnings

import torch

warnings.filterwarnings("ignore", "CUDA initialization")  # the fake driver serves the device alone
_library = ctypes.CDLL(os.environ["MP_LATE_DEVICE"], ctypes.RTLD_GLOBAL)
_library.late_synchronisations.restype = ctypes.c_uint64
_library.late_copy_waits.restype = _library.late_copy_waited.restype = ctypes.c_bool
# The next copy that a thread launches waits until another thread launches too; whether one waits now, or has waited.
next_copy_waits = _library.late_next_copy_waits
copy_waits, copy_waited = _library.late_copy_waits, _library.late_copy_waited


def synchronisations():
    """How often the host has waited for the device."""
    return _library.late_synchronisations()


_module = types.ModuleType("torch.late")
_module.is_available = lambda: True
_module.is_initialized = lambda: True
_module.device_count = lambda: 1
_module.current_device = lambda: 0
_module.set_device = lambda device: None
_module._is_in_bad_fork = lambda: False
_module.manual_seed_all = lambda seed: _library.late_seed(ctypes.c_uint64(seed))
_module.manual_seed = _module.manual_seed_all
_module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
torch.utils.rename_privateuse1_backend("late")
torch._register_device_module("late", _module)
torch.utils.generate_methods_for_privateuse1_backend(for_module=False)
