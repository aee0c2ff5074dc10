#pragma once

#include <memory>

#include "instrument/torch/device.hpp"

namespace mp::twin {

// For tests: the CPU as a device. A figure is computed at once and appears in its place `steps` fences later; until
// then the place holds garbage.
std::unique_ptr<Device> make_late_cpu(int steps);

}  // namespace mp::twin
