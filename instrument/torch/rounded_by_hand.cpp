#include "instrument/torch/rounded_by_hand.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kFewest = 64;  // elements below which equal bits prove nothing

float rounded(float x, at::ScalarType type) {
    return type == at::kHalf ? static_cast<float>(at::Half(x)) : static_cast<float>(at::BFloat16(x));
}

// The format of 16 bits that holds all of the values. In nearly all programs the first value answers.
std::optional<at::ScalarType> format_of_all(const at::Tensor& some) {
    const auto* const begin = some.data_ptr<float>();
    for (const at::ScalarType type : {at::kBFloat16, at::kHalf})
        if (std::all_of(begin, begin + some.numel(), [type](float x) { return rounded(x, type) == x; }))
            return type;
    return std::nullopt;
}

// Whether the step may have brought back the bits that a rounding took. Quantisation-aware training rounds weights for
// the forward alone. The change in the step is then the update and what the rounding had taken: as much as one rounding
// takes now, or as the updates since the weights were 16-bit values.
bool may_come_back(const trace::TensorRecord& r, double rounding_squares, const at::Tensor& some) {
    return !format_of_all(some) && (r.change_error_squares > 0.5 * rounding_squares ||
                                    r.change_error_squares > 0.1 * r.twin_change_squares);
}

struct Cost {
    double squares;  // what one rounding takes
    bool is_wide;    // most values need more bits
};

Cost cost_of(const at::Tensor& some, at::ScalarType type) {
    std::int64_t wide = 0;
    double squares = 0;
    const auto* const values = some.data_ptr<float>();
    for (std::int64_t i = 0; i < some.numel(); ++i) {
        const double lost = double{values[i]} - double{rounded(values[i], type)};
        wide += lost != 0;
        squares += std::isfinite(lost) ? lost * lost : 0;
    }
    return {squares, 2 * wide > some.numel()};
}

bool can_be_followed(const at::Tensor& t) {
    return t.scalar_type() == at::kFloat && t.device().is_cpu() && t.numel() >= kFewest &&
           has_plain_memory(t) && t.is_non_overlapping_and_dense();
}

}  // namespace

void RoundedByHand::begin(const std::string& name, const at::Tensor& t, const at::Tensor& some,
                          const at::Tensor& twin_some) {
    if (!can_be_followed(t)) return;
    const auto known = states_.find(name);
    const bool widened = known != states_.end() && known->second.widened;
    State& state = states_[name] = {format_of_all(some)};
    if (!state.type) return;
    state.twin_is_wide = cost_of(twin_some, *state.type).is_wide;
    if (!widened) return;
    at::Tensor low = t.detach().to(*state.type);
    if (!at::equal(low.to(at::kFloat), t.detach())) return;
    sought_.push_back(name);
    low_.push_back(std::move(low));
}

void RoundedByHand::search() {
    const auto found = masters_.find(low_, false);
    for (std::size_t i = 0; i < found.size(); ++i) {
        State& state = states_.at(sought_[i]);
        state.again = found[i].empty();
        for (const Masters::Slice& slice : found[i])
            state.mastered = std::max(state.mastered, static_cast<std::uint64_t>(slice.length()));
    }
    sought_.clear();
    low_.clear();
}

void RoundedByHand::end(trace::TensorRecord& record, const at::Tensor& some, const at::Tensor& twin_some) {
    const auto known = states_.find(record.name);
    if (known == states_.end() || !known->second.type) return;
    State& state = known->second;
    const Cost cost = cost_of(twin_some, *state.type);
    state.widened = cost.is_wide;
    record.mastered = state.mastered;
    if (state.twin_is_wide && may_come_back(record, cost.squares, some)) {
        record.change_squares = record.twin_change_squares = record.change_error_squares = 0;
        return;
    }
    if (!state.again) return;
    record.rounded = record.elements;
    record.narrow = dtype_of(*state.type);
    record.rounding_squares = cost.squares;
}

}  // namespace mp::twin
