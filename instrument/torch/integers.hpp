#pragma once

#include <cstdint>

#include "instrument/torch/call.hpp"

namespace mp::twin {

// How many integers of the range or of the cast tensor the 16-bit format of `result` does not have. 0 where the values
// are not all integers, and where their memory cannot be read without waiting for a device. Reads 65,536 at most.
std::uint64_t integers_lost_by(const OpInfo&, const std::vector<IValue>& arguments, const at::Tensor& result);

}  // namespace mp::twin
