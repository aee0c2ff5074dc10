#pragma once

#include <string>

#include "instrument/cuda/events.hpp"

namespace mp::raw {

// How a product was asked for: "fp16 sums", "fp32 sums of TF32 inputs, 2 parts added in the result, bias and GELU".
std::string how_of(const Product&);

}  // namespace mp::raw
