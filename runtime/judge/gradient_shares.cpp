#include "runtime/judge/gradient_shares.hpp"

#include <algorithm>

namespace mp::trace {

GradientShares::GradientShares(const RunModel& model) {
    for (const TensorSum& t : model.tensors) {
        if (t.kind != TensorKind::gradient || !(t.sampled_twin_squares > 0)) continue;
        const std::size_t dot = t.name.rfind('.');
        const auto layer = std::string_view(t.name).substr(0, dot == std::string::npos ? 0 : dot);
        gradients_.push_back({&t, layer});
        owners_.insert(layer);
        all_ += t.sampled_error_squares;
        first_all_ += t.first_error_squares;
    }
    for (const OpSum& s : model.ops) {
        if (s.total.phase != Phase::backward) continue;
        std::uint64_t& end = ends_of_backward_[s.total.layer];
        end = std::max(end, s.total.first);
    }
}

GradientShares::Share GradientShares::of(const OpRecord& op, double error) const {
    const bool owns = owners_.contains(op.layer);
    double explained = 0, first = 0;
    for (const auto& [tensor, layer] : gradients_) {
        if (owns ? layer != op.layer : ends_before(layer, op.first)) continue;
        const TensorSum& t = *tensor;
        explained += std::min(t.sampled_error_squares, error * error * t.sampled_twin_squares);
        first += std::min(t.first_error_squares, error * error * t.first_twin_squares);
    }
    return {all_ > 0 ? explained / all_ : 1, first_all_ > 0 ? first / first_all_ : -1};
}

bool GradientShares::ends_before(std::string_view layer, std::uint64_t op) const {
    const auto end = ends_of_backward_.find(layer);
    return end != ends_of_backward_.end() && end->second < op;
}

}  // namespace mp::trace
