#pragma once

#include <memory>

#include "instrument/torch/device.hpp"

namespace mp::twin {

// The device whose tensors are measured where they are; null if there is none.
std::unique_ptr<Device> make_device();

}  // namespace mp::twin
