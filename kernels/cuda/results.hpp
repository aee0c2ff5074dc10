#pragma once

#include <cstdint>

namespace mp::cuda {

// What first_nonfinite() finds in one tensor. The index counts elements in the order of the dimensions, the last one
// fastest, whatever the strides are.
struct Nonfinite {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t count = 0;      // NaN and infinite elements
    std::uint64_t first = kNone;  // index of the first
};

}  // namespace mp::cuda
