#include "instrument/torch/running_totals.hpp"

#include <algorithm>
#include <cmath>

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kLong = 16;  // additions from which on a sum is a running sum

bool is_single_value(const IValue& value) {
    if (!value.isTensor() || !value.toTensor().defined()) return false;
    const at::Tensor& t = value.toTensor();
    return t.numel() == 1 && has_plain_memory(t) && t.device().is_cpu() && carries_floats(t) &&
           !t.is_complex() && !t.unsafeGetTensorImpl()->is_wrapped_number();
}

bool may_be_total(const at::Tensor& t) {
    return t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf;
}

}  // namespace

std::optional<RunningTotals::Addition> RunningTotals::begins(const OpInfo& op,
                                                             c10::ArrayRef<IValue> arguments) {
    if (arguments.size() < 3 || !is_single_value(arguments[0]) || !is_single_value(arguments[1]))
        return std::nullopt;
    const at::Tensor &first = arguments[0].toTensor(), &second = arguments[1].toTensor();
    if (!may_be_total(first) && !may_be_total(second)) return std::nullopt;
    const TwinScope scope;
    const double times =
        (arguments[2].isScalar() ? arguments[2].toScalar().toDouble() : 1) * (op.base == "sub" ? -1 : 1);
    const double left = scalar_of(first), right = times * scalar_of(second);
    const std::lock_guard lock(mutex_);
    if (const Total* const known = total_in(first, left))
        return Addition{known->exact, right, known->largest, known->length};
    const Total* const known = op.writes || times != 1 ? nullptr : total_in(second, right);
    if (known) return Addition{known->exact, left, known->largest, known->length};
    return Addition{left, right, std::fabs(left), 0};
}

std::optional<RunningTotals::Drift> RunningTotals::ends(const Addition& a, const at::Tensor& sum) {
    if (!sum.defined() || sum.numel() != 1 || !may_be_total(sum)) return std::nullopt;
    const TwinScope scope;
    const double value = scalar_of(sum), exact = a.exact + a.addend;
    const Place place{sum.storage().unsafeGetStorageImpl(), sum.storage_offset()};
    const std::lock_guard lock(mutex_);
    if (!std::isfinite(value) || !std::isfinite(exact)) {
        totals_.erase(place);
        return std::nullopt;
    }
    if (totals_.size() >= room_) {
        std::erase_if(totals_, [](const auto& entry) { return entry.second.storage.use_count() == 0; });
        room_ = std::max<std::size_t>(256, 2 * totals_.size());
    }
    const Total total{sum.storage().getWeakStorageImpl(), value, exact,
                      std::max({a.largest, std::fabs(value), std::fabs(exact)}), a.length + 1};
    totals_.insert_or_assign(place, total);
    if (total.length < kLong || total.largest == 0) return std::nullopt;
    return Drift{total.length, std::fabs(value - exact) / total.largest};
}

// Null if the memory is not a total's, or has another value by now.
const RunningTotals::Total* RunningTotals::total_in(const at::Tensor& t, double value) const {
    const auto found = totals_.find({t.storage().unsafeGetStorageImpl(), t.storage_offset()});
    if (found == totals_.end() || found->second.storage.use_count() == 0) return nullptr;
    return found->second.value == value && may_be_total(t) ? &found->second : nullptr;
}

}  // namespace mp::twin
