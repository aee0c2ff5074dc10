#pragma once

#include "kernels/numerics/tensor_stats.hpp"
#include "runtime/trace/records.hpp"

namespace mp::trace {

// Adds the figures of a result to the record of its op. As in the fold, a NaN is the worst value and wins, whatever
// comes first.
inline void add_result(OpRecord& into, const TensorStats& stats) {
    into.elements += stats.count;
    into.nan += stats.nan;
    into.pos_inf += stats.pos_inf;
    into.neg_inf += stats.neg_inf;
    into.zeros += stats.zero;
    into.subnormals += stats.subnormal;
    into.amax = larger(into.amax, stats.amax);
    into.amin = smaller_above_zero(into.amin, stats.amin);
}

}  // namespace mp::trace
