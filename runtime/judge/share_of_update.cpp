// The share of the gradients' error that one op explains.

#include <algorithm>
#include <map>
#include <string_view>

#include "runtime/judge/rules.hpp"

namespace mp::trace {
namespace {

// By layer: the ordinal of its last op in backward. The gradients of its parameters are complete then.
std::map<std::string_view, std::uint64_t> ends_of_backward(const RunModel& m) {
    std::map<std::string_view, std::uint64_t> ends;
    for (const OpSum& s : m.ops) {
        if (s.total.phase == Phase::backward)
            ends[s.total.layer] = std::max(ends[s.total.layer], s.total.first);
    }
    return ends;
}

std::string_view owner_of(const TensorSum& t) {
    const std::size_t dot = t.name.rfind('.');
    return std::string_view(t.name).substr(0, dot == std::string::npos ? 0 : dot);
}

bool is_compared_gradient(const TensorSum& t) {
    return t.kind == TensorKind::gradient && t.sampled_twin_squares > 0;
}

}  // namespace

UpdateShare share_of_update(const RunModel& m, const OpRecord& op, double error) {
    const bool owns = std::ranges::any_of(
        m.tensors, [&](const TensorSum& t) { return is_compared_gradient(t) && owner_of(t) == op.layer; });
    const auto ends = owns ? std::map<std::string_view, std::uint64_t>{} : ends_of_backward(m);
    const auto behind = [&](std::string_view layer) {
        if (owns) return layer == op.layer;
        const auto end = ends.find(layer);
        return end == ends.end() || end->second >= op.first;
    };
    double explained = 0, all = 0, first_explained = 0, first_all = 0;
    for (const TensorSum& t : m.tensors) {
        if (!is_compared_gradient(t)) continue;
        all += t.sampled_error_squares;
        first_all += t.first_error_squares;
        if (!behind(owner_of(t))) continue;
        explained += std::min(t.sampled_error_squares, error * error * t.sampled_twin_squares);
        first_explained += std::min(t.first_error_squares, error * error * t.first_twin_squares);
    }
    return {all > 0 ? explained / all : 1, first_all > 0 ? first_explained / first_all : -1};
}

}  // namespace mp::trace
