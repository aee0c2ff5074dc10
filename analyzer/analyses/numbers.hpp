#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/numerics/dtype.hpp"

// The limits of a low-precision dtype, as rules need them: all derived from the one FloatFormat
// table. `lowp` (fp16 or bf16, not known which) answers with the worse of the two: fp16's range,
// bf16's bits.

namespace mp::lint {

int significant_bits(DType);                 // 11 for fp16, 8 for bf16, 24 for fp32
double largest_value(DType);                 // 65504
double overflows_from(DType);                // 65520: from here on a value becomes inf (or NaN)
double smallest_normal(DType);               // 6.1e-05
double vanishes_below(DType);                // 2.98e-08: up to here a value becomes 0
std::uint64_t first_inexact_integer(DType);  // 2049
double rounded(DType, double);               // nearest value, ties to even

// Where a running sum of ones stops growing: "2048", "256 (bf16) or 2048 (fp16)".
std::string stalls_at(DType);
// ", and from 65520 on it overflows"; empty for bf16, whose range is fp32's.
std::string and_overflows(DType, std::string_view what = "it");
// A number as people write it: at most `digits` significant ones, "65504", "2.98e-08".
std::string shown(double, int digits = 6);

}  // namespace mp::lint
