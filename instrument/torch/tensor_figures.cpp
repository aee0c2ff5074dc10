#include "instrument/torch/tensor_figures.hpp"

#include "instrument/torch/tensors.hpp"

namespace mp::twin {

void put(trace::TensorRecord& r, const TensorStats& stats, const Divergence& d) {
    r.elements = stats.count;
    r.nonfinite_real = stats.nonfinite();
    r.amax = stats.amax;
    r.zeros = stats.zero;
    r.subnormals = stats.subnormal;
    r.compared = d.compared;
    r.nonfinite_twin = d.nonfinite_both + d.nonfinite_twin;
    r.differ = d.differ;
    r.error_squares = d.ee;
    r.twin_squares = d.yy;
    r.twin_amax = d.twin_amax;
    r.flushed = d.flushed;
    r.flushed_abs = d.flushed_abs;
    r.twin_abs = d.abs_y;
}

void put(trace::TensorRecord& record, const cpu::Stagnation& still, bool has_twin) {
    record.meant_to_move = still.meant_to_move;
    record.unmoved = still.unmoved;
    record.below_half_ulp = has_twin ? still.below_half_ulp : 0;
    record.wanted_squares = has_twin ? still.wanted_squares : 0;
    record.moved_dot = has_twin ? still.moved_dot : 0;
}

void put(trace::TensorRecord& record, const Divergence& change) {
    record.change_squares = change.xx;
    record.twin_change_squares = change.yy;
    record.change_error_squares = change.ee;
}

std::optional<cpu::Stagnation> stagnation_of(const std::array<at::Tensor, 4>& four) {
    cpu::TensorView views[4];
    for (std::size_t i = 0; i < 4; ++i)
        if (!view_for_kernels(four[i], views[i])) return std::nullopt;
    cpu::Stagnation still;
    if (!cpu::stagnation(views[0], views[1], views[2], views[3], still)) return std::nullopt;
    return still;
}

}  // namespace mp::twin
