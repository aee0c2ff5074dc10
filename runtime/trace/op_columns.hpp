#pragma once

#include <cstdint>

#include "runtime/trace/records.hpp"

namespace mp::trace {

// The columns of 8 bytes in an ops frame, in the order of their bits in its mask: counts, then values. A new
// one goes to the end of the mask, after the bit of exponents: give it a third table here.

inline constexpr std::uint64_t OpRecord::* kOpCounts[] = {
    &OpRecord::first,         &OpRecord::calls,          &OpRecord::elements,       &OpRecord::nan,
    &OpRecord::pos_inf,       &OpRecord::neg_inf,        &OpRecord::zeros,          &OpRecord::subnormals,
    &OpRecord::compared,      &OpRecord::nonfinite_real, &OpRecord::nonfinite_twin, &OpRecord::loc_compared,
    &OpRecord::loc_nonfinite, &OpRecord::added,          &OpRecord::absorbed,       &OpRecord::origins,
    &OpRecord::first_origin,
};
inline constexpr double OpRecord::* kOpValues[] = {
    &OpRecord::amax,         &OpRecord::amin,        &OpRecord::twin_amax, &OpRecord::error_squares,
    &OpRecord::twin_squares, &OpRecord::flushed_abs, &OpRecord::twin_abs,  &OpRecord::loc_error_squares,
    &OpRecord::loc_squares,  &OpRecord::loc_dot,     &OpRecord::loc_worst, &OpRecord::prop_error_squares,
    &OpRecord::input_amax,   &OpRecord::input_error,
};

inline constexpr unsigned kOpCountColumns = sizeof kOpCounts / sizeof *kOpCounts;
inline constexpr unsigned kOpValueColumns = sizeof kOpValues / sizeof *kOpValues;
static_assert(kOpCountColumns + kOpValueColumns <= 62);
// The bit behind them: exponents of some rows follow the columns.
inline constexpr unsigned kExponentsBit = kOpCountColumns + kOpValueColumns;

// The bit of a field.
constexpr unsigned column_of(std::uint64_t OpRecord::* field) {
    unsigned at = 0;
    while (kOpCounts[at] != field) ++at;
    return at;
}
constexpr unsigned column_of(double OpRecord::* field) {
    unsigned at = 0;
    while (kOpValues[at] != field) ++at;
    return kOpCountColumns + at;
}

}  // namespace mp::trace
