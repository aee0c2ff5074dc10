#pragma once

#include <memory>

#include "instrument/torch/device.hpp"

namespace mp::twin {

// The NVIDIA GPUs of this process. It uses the driver and what the CPU part of torch knows about devices, so that one
// adapter serves wheels with and without CUDA. The driver is first looked for when a tensor is on a GPU. Null if
// the build has no kernels for GPUs.
std::unique_ptr<Device> make_cuda_device();

}  // namespace mp::twin
