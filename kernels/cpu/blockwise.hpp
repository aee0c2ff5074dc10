#pragma once

#include <cstdint>

#include "kernels/numerics/blockwise.hpp"

// Optimizer state in 8 bits on the CPU. A range starts at the start of a block; every pointer is contiguous. The bits
// are those of kernels/numerics/blockwise.hpp. Nothing here throws or allocates.

namespace mp::cpu {

struct QuantizedRange {
    std::int64_t elements = 0;
    std::uint8_t* codes = nullptr;
    float* scales = nullptr;  // one for each blockwise::kBlock elements, the last block may be shorter
};

void quantize(const blockwise::Table&, const float* values, const QuantizedRange& into) noexcept;
void dequantize(const blockwise::Table&, const QuantizedRange&, float* values) noexcept;

}  // namespace mp::cpu
