// Clang asks for this one by name; its functions are declared in mp_cuda_device.h.
#pragma once
