#include "runtime/judge/gradient_shares.hpp"

#include <algorithm>

#include "kernels/numerics/op_traits.hpp"
#include "runtime/judge/floors.hpp"

namespace mp::trace {

namespace {

// What comes after a gradient is made: a copy into a bucket, its division by the number of ranks, the addition of the
// next micro-batch's.
bool moves_gradients(std::string_view op) {
    return is_elementwise(op) || traits_of_recorded(op).has(Trait::copies);
}

}  // namespace

template <class Chosen>
GradientShares::Share GradientShares::explained(double error, Chosen chosen) const {
    double sampled = 0, first = 0;
    for (const auto& [tensor, layer] : gradients_) {
        if (!chosen(*tensor, layer)) continue;
        sampled += std::min(tensor->sampled_error_squares, error * error * tensor->sampled_twin_squares);
        first += std::min(tensor->first_error_squares, error * error * tensor->first_twin_squares);
    }
    return {all_ > 0 ? sampled / all_ : 1, first_all_ > 0 ? first / first_all_ : -1};
}

GradientShares::GradientShares(const RunModel& model)
    : ranks_(static_cast<double>(std::max<std::size_t>(model.ranks.size(), 1))) {
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
        if (moves_gradients(s.total.op)) continue;
        std::uint64_t& last = last_contraction_[s.total.layer];
        last = std::max(last, s.total.first);
    }
}

GradientShares::Share GradientShares::of(const OpRecord& op, double error) const {
    const bool owns = owners_.contains(op.layer);
    const bool makes_gradients = owns && op.calls > 0 && contracts_last(op);
    const double results =
        static_cast<double>(op.elements) / static_cast<double>(std::max<std::uint64_t>(op.calls, 1));
    return explained(error, [&](const TensorSum& t, std::string_view layer) {
        if (owns ? layer != op.layer : ends_before(layer, op.first)) return false;
        return !makes_gradients || static_cast<double>(t.last.elements) <= results * ranks_;
    });
}

GradientShares::Share GradientShares::after(const OpRecord& op, double error) const {
    return explained(error, [&](const TensorSum&, std::string_view layer) {
        return layer != op.layer && !ends_before(layer, op.first);
    });
}

bool GradientShares::contracts_last(const OpRecord& op) const {
    const auto last = last_contraction_.find(op.layer);
    return last == last_contraction_.end() || last->second <= op.first;
}

bool GradientShares::ends_before(std::string_view layer, std::uint64_t op) const {
    const auto end = ends_of_backward_.find(layer);
    return end != ends_of_backward_.end() && end->second < op;
}

}  // namespace mp::trace
