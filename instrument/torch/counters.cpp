#include "instrument/torch/counters.hpp"

#include <algorithm>
#include <optional>

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kFewElements = 64;

bool may_count(const at::Tensor& t) {
    return is_low_precision(t.scalar_type()) && t.numel() > 0 && t.numel() < kFewElements &&
           has_plain_memory(t) && t.device().is_cpu() && t.is_contiguous();
}

std::optional<double> number_in(const IValue& value) {
    if (value.isDouble()) return value.toDouble();
    if (value.isInt()) return static_cast<double>(value.toInt());
    const bool number = value.isTensor() && value.toTensor().defined() &&
                        value.toTensor().unsafeGetTensorImpl()->is_wrapped_number();
    if (!number) return std::nullopt;
    const TwinScope scope;
    return scalar_of(value.toTensor());
}

// The Python number that an op adds to its first argument; none: it adds something else, or does something else.
std::optional<double> added_number(const OpInfo& op, const std::vector<IValue>& arguments) {
    static constexpr std::string_view kSums[] = {"add", "sub", "_foreach_add", "_foreach_sub"};
    if (std::ranges::find(kSums, op.base) == std::end(kSums) || arguments.size() < 2 ||
        op.arguments[0].write != op.writes || op.arguments[0].overwrite)
        return std::nullopt;
    const std::optional<double> number = number_in(arguments[1]);
    const std::optional<double> times = arguments.size() > 2 ? number_in(arguments[2]) : 1.0;
    if (!number || !times || *number * *times == 0) return std::nullopt;
    return *number * *times;
}

}  // namespace

std::string bytes_in(const at::Tensor& t) {
    return {static_cast<const char*>(t.data_ptr()), static_cast<std::size_t>(t.numel()) * t.element_size()};
}

std::vector<Counters::Counter> Counters::counted_by(const OpInfo& op, const std::vector<IValue>& arguments,
                                                    std::int64_t step) {
    std::vector<Counter> counters;
    if (!op.writes) return counters;
    const std::optional<double> number = added_number(op, arguments);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (!op.arguments[i].write) continue;
        for_each_tensor(arguments[i], [&](const at::Tensor& t) {
            if (!may_count(t)) return;
            Memory& memory = memory_of(t);
            memory.sum_of = 0;
            if (!number)
                memory.other_write = step;
            else if (counts(memory, t.storage_offset(), *number, step))
                counters.push_back({t, bytes_in(t)});
        });
    }
    return counters;
}

std::optional<Counters::Counter> Counters::made_by(const OpInfo& op, const std::vector<IValue>& arguments,
                                                   const Site& site, const at::Tensor& sum) {
    if (op.writes || arguments.empty() || !arguments[0].isTensor() || !may_count(sum)) return std::nullopt;
    const at::Tensor& old = arguments[0].toTensor();
    if (!old.defined() || !may_count(old) || old.sizes() != sum.sizes() ||
        old.scalar_type() != sum.scalar_type())
        return std::nullopt;
    const std::optional<double> number = added_number(op, arguments);
    if (!number) return std::nullopt;
    const Place place{site.layer, site.phase, *number, sum.numel(), sum.scalar_type()};
    const std::lock_guard lock(mutex_);
    memory_of(sum).sum_of = *number;
    if (memory_of(old).sum_of == *number) chains_.insert(place);
    if (!chains_.contains(place)) return std::nullopt;
    return Counter{sum, bytes_in(old)};
}

Counters::Memory& Counters::memory_of(const at::Tensor& t) {
    if (memory_.size() >= room_) {
        std::erase_if(memory_, [](const auto& entry) { return entry.second.storage.use_count() == 0; });
        room_ = std::max<std::size_t>(1024, 2 * memory_.size());
    }
    const c10::Storage& storage = t.storage();
    const auto [at, fresh] =
        memory_.try_emplace(storage.unsafeGetStorageImpl(), Memory{storage.getWeakStorageImpl(), -1, {}});
    if (!fresh && at->second.storage.use_count() == 0) at->second = {storage.getWeakStorageImpl(), -1, {}};
    return at->second;
}

// What another op writes into the same memory, as a quotient to which a small number is added, is no counter.
bool Counters::counts(Memory& memory, std::int64_t offset, double number, std::int64_t step) {
    const auto [at, fresh] = memory.added.try_emplace(offset, Added{number, step});
    const Added before = std::exchange(at->second, Added{number, step});
    return !fresh && before.step < step && before.number == number && memory.other_write < before.step;
}

}  // namespace mp::twin
