#pragma once

#include <memory>

#include "instrument/torch/device.hpp"

namespace mp::twin {

// The NVIDIA GPUs of this process. It uses the driver and what the CPU part of torch knows about devices, so that one
// adapter serves wheels with and without CUDA. The driver is first looked for when a tensor is on a GPU. Null if
// the build has no kernels for GPUs. `type`: what torch calls the devices; tests have a fake one.
std::unique_ptr<Device> make_cuda_device(c10::DeviceType type = c10::DeviceType::CUDA);

// Whether the matrix products of a GPU can round fp32 inputs to TF32.
bool has_tf32(at::Device) noexcept;

}  // namespace mp::twin
