#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

#include "runtime/fold/run_model.hpp"

// How each part of a model is merged with another of its kind. Ties go to the earlier step, then to the lower
// rank, so that the order of reading never shows.

namespace mp::trace {

inline constexpr std::array<double OpRecord::*, 8> kOpSums{
    &OpRecord::error_squares, &OpRecord::twin_squares,      &OpRecord::flushed_abs,
    &OpRecord::twin_abs,      &OpRecord::loc_error_squares, &OpRecord::loc_squares,
    &OpRecord::loc_dot,       &OpRecord::prop_error_squares};
inline constexpr std::array<double TensorRecord::*, 6> kTensorSums{
    &TensorRecord::error_squares, &TensorRecord::twin_squares,   &TensorRecord::flushed_abs,
    &TensorRecord::twin_abs,      &TensorRecord::wanted_squares, &TensorRecord::moved_dot};

inline bool earlier(const Place& a, const Place& b) {
    return std::tuple(a.step, a.rank) < std::tuple(b.step, b.rank);
}

// The larger value and where it was seen; a NaN never is.
inline void keep_worst(double& worst, Place& at, double value, const Place& where) {
    if (value < 0 || value < worst || value != value) return;
    if (value == worst && at.step.known() && !earlier(where, at)) return;
    worst = value;
    at = where;
}

inline void keep_earliest(Step& kept, Step other) {
    if (other.known() && (!kept.known() || other < kept)) kept = other;
}
inline void keep_earliest(Place& kept, const Place& other) {
    if (other.step.known() && (!kept.step.known() || earlier(other, kept))) kept = other;
}

inline void keep_worse(Cell& into, const Cell& other) {
    into.cum_phi = std::max(into.cum_phi, other.cum_phi);
    into.loc_phi = std::max(into.loc_phi, other.loc_phi);
    into.flush = std::max(into.flush, other.flush);
    into.nonfinite = std::max(into.nonfinite, other.nonfinite);
}

inline void keep_origin(OpSum& into, const Place& where, const OpRecord& r) {
    const bool none = into.at_origin.origins == 0;
    const auto order = [](const Place& p, const OpRecord& o) {
        return std::tuple(p.step, o.first_origin, p.rank, -o.input_amax);
    };
    if (!none && order(into.first_origin, into.at_origin) <= order(where, r)) return;
    into.first_origin = where;
    into.at_origin = r;
    into.total.first_origin = r.first_origin;
}

// What happens first in a step: phases in their order, then ordinals, which are a rank's own.
inline std::tuple<bool, Phase, std::uint64_t, Rank> origin_order(const OpRecord& op, Rank rank) {
    return {op.phase == Phase::unknown, op.phase, op.first_origin, rank};
}

inline double smaller_above_zero(double a, double b) {
    if (!(a > 0)) return b;
    return b > 0 ? std::min(a, b) : a;
}

// Counts and extremes; sums of doubles are added elsewhere, exactly.
inline void add_collective_counts(CollectiveRecord& into, const CollectiveRecord& r) {
    into.calls += r.calls;
    into.bytes += r.bytes;
    into.compared += r.compared;
    into.made_nonfinite += r.made_nonfinite;
}

inline void add_tensor_counts(TensorRecord& into, const TensorRecord& r) {
    for (const auto field : {&TensorRecord::elements, &TensorRecord::compared, &TensorRecord::nonfinite_real,
                             &TensorRecord::nonfinite_twin, &TensorRecord::differ, &TensorRecord::zeros,
                             &TensorRecord::subnormals, &TensorRecord::flushed, &TensorRecord::meant_to_move,
                             &TensorRecord::unmoved, &TensorRecord::below_half_ulp})
        into.*field += r.*field;
    into.amax = std::max(into.amax, r.amax);
    into.twin_amax = std::max(into.twin_amax, r.twin_amax);
    if (into.hash != r.hash) into.hash = 0;
    into.dtype = std::max(into.dtype, r.dtype);
}

inline void add_coverage(Coverage& into, const Coverage& c) {
    for (const auto field :
         {&Coverage::ops, &Coverage::shadowed, &Coverage::unshadowed, &Coverage::shadowed_bytes,
          &Coverage::unshadowed_bytes, &Coverage::seeds, &Coverage::seeded_bytes, &Coverage::external,
          &Coverage::stale, &Coverage::flips, &Coverage::leaks, &Coverage::failed})
        into.*field += c.*field;
    into.worst_leak = std::max(into.worst_leak, c.worst_leak);
}

// Elements summed over ranks, of the last step that said it.
inline void merge_place(PlaceTotal& into, const PlaceTotal& other) {
    keep_earliest(into.first_step, other.first_step);
    if (other.last_step < into.last_step) return;
    if (other.last_step > into.last_step) {
        into.place.tensors = other.place.tensors;
        into.place.elements = other.place.elements;
        into.last_step = other.last_step;
    } else {
        into.place.tensors += other.place.tensors;
        into.place.elements += other.place.elements;
    }
}

}  // namespace mp::trace
