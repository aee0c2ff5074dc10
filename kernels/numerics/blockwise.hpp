#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/numerics/optimizer_step.hpp"

// Optimizer state in 8 bits, as bitsandbytes and torchao keep it (Dettmers et al., 2021, arXiv 2110.02861): a tensor is
// cut into blocks of 256 elements in memory order. A block has one fp32 scale, its largest magnitude, and each element
// one code: the index of the nearest value in a sorted table of 256 values in [-1, 1].
//
//            codes            scales              table
// bitsandbytes  state1, state2   absmax1, absmax2    qmap1, qmap2
// torchao       codes            scale               qmap
//
// Codes of the libraries may differ by one from these where a value is as near to two values of the table as fp32 can
// tell; bitsandbytes' kernel for the CPU also rounds the value to 16 bits first.

namespace mp::blockwise {

inline constexpr std::int64_t kBlock = 256;
inline constexpr int kCodes = 256;

struct Table {
    float value[kCodes];  // ascending
    float middle[kCodes -
                 1];  // middle[i] is between value[i] and value[i + 1]; from there on the upper one is nearer
};

// False if the values are not finite or not ascending.
inline bool make_table(const float* values, Table& table) {
    for (int i = 0; i < kCodes; ++i) {
        if (!std::isfinite(values[i]) || (i > 0 && values[i] < values[i - 1])) return false;
        table.value[i] = values[i];
        if (i > 0) table.middle[i - 1] = (values[i - 1] + values[i]) * 0.5f;
    }
    return true;
}

// The number of middles that are not above x: a search without branches. NaN has code 0.
MP_HD inline std::uint8_t code_of(const Table& table, float x) {
    std::uint32_t code = 0;
    for (std::uint32_t half = kCodes / 2; half > 0; half /= 2)
        code += x >= table.middle[code + half - 1] ? half : 0;
    return static_cast<std::uint8_t>(code);
}

// The part of a block's scale that an element is, in [-1, 1]. A block of zeros has scale 0 and stays zeros.
MP_HD inline float share_of(float x, float scale) { return scale == 0 ? 0 : optim::quotient(x, scale); }

MP_HD inline float decoded(const Table& table, std::uint8_t code, float scale) {
    return optim::product(table.value[code], scale);
}

// The larger magnitude; NaN if one is NaN, so that a block which holds one decodes to NaN as a whole.
MP_HD inline float larger(float largest, float x) {
    const float magnitude = __builtin_fabsf(x);
    return magnitude > largest || magnitude != magnitude ? magnitude : largest;
}

}  // namespace mp::blockwise
