#include "instrument/torch/standing_updates.hpp"

#include <algorithm>

#include "instrument/torch/tensors.hpp"
#include "instrument/torch/thread_state.hpp"

namespace mp::twin {
namespace {

constexpr std::int64_t kFewest = 64;     // elements
constexpr std::int64_t kMost = 1 << 16;  // elements of a call
constexpr std::int64_t kBefore = 2;      // sampled steps in which the same op updated the memory

bool may_stand(const at::Tensor& target, const at::Tensor& addend) {
    return is_low_precision(target.scalar_type()) && target.element_size() == 2 &&
           target.numel() >= kFewest && has_plain_memory(target) && target.device().is_cpu() &&
           target.is_contiguous() && addend.device().is_cpu() && addend.sizes() == target.sizes() &&
           carries_floats(addend);
}

std::vector<at::Tensor> tensors_in(const IValue& value) {
    std::vector<at::Tensor> tensors;
    for_each_tensor(value, [&](const at::Tensor& t) { tensors.push_back(t); });
    return tensors;
}

// Which of the first elements an op changes, if it were exact: add() where the addend is not 0, lerp() where the end is
// not the start.
std::vector<std::uint8_t> meant(const OpInfo& op, const at::Tensor& target, const at::Tensor& other,
                                std::int64_t elements) {
    const bool moves = op.base == "lerp" || op.base == "_foreach_lerp";
    const at::Tensor end = other.reshape({-1}).slice(0, 0, elements);
    const at::Tensor start = target.reshape({-1}).slice(0, 0, elements);
    const at::Tensor is = (moves ? end.ne(start) : end.ne(0)).contiguous();
    const bool* const values = is.data_ptr<bool>();
    return {values, values + elements};
}

std::string bytes_of_first(const at::Tensor& t, std::size_t elements) {
    return {static_cast<const char*>(t.data_ptr()), 2 * elements};
}

}  // namespace

std::vector<StandingUpdates::Update> StandingUpdates::begin(const OpInfo& op,
                                                            const std::vector<IValue>& arguments,
                                                            std::int64_t step) {
    if (arguments.size() < 2) return {};
    const std::vector<at::Tensor> targets = tensors_in(arguments[0]), others = tensors_in(arguments[1]);
    if (targets.size() != others.size()) return {};  // a number is added
    const TwinScope scope;
    std::vector<Update> updates;
    std::int64_t rest = kMost;
    for (std::size_t i = 0; i < targets.size() && rest > 0; ++i) {
        if (!may_stand(targets[i], others[i]) || !is_updated_again(op, targets[i], step)) continue;
        const std::int64_t elements = std::min(rest, targets[i].numel());
        rest -= elements;
        updates.push_back({targets[i], bytes_of_first(targets[i], static_cast<std::size_t>(elements)),
                           meant(op, targets[i], others[i], elements)});
    }
    return updates;
}

StandingUpdates::Count StandingUpdates::count(const std::vector<Update>& updates) {
    Count count;
    for (const Update& u : updates) {
        const std::string after = bytes_of_first(u.target, u.is_meant.size());
        for (std::size_t i = 0; i < u.is_meant.size(); ++i) {
            count.meant += u.is_meant[i];
            count.stood += u.is_meant[i] && after.compare(2 * i, 2, u.before, 2 * i, 2) == 0;
        }
    }
    return count;
}

bool StandingUpdates::is_updated_again(const OpInfo& op, const at::Tensor& t, std::int64_t step) {
    const std::lock_guard lock(mutex_);
    if (memory_.size() >= room_) {
        std::erase_if(memory_, [](const auto& entry) { return entry.second.storage.use_count() == 0; });
        room_ = std::max<std::size_t>(1024, 2 * memory_.size());
    }
    const c10::Storage& storage = t.storage();
    Memory fresh{storage.getWeakStorageImpl(), &op, step, 0};
    const auto [at, is_new] = memory_.try_emplace(storage.unsafeGetStorageImpl(), fresh);
    Memory& memory = at->second;
    if (memory.storage.use_count() == 0 || memory.op != &op) memory = std::move(fresh);
    if (memory.step != step) ++memory.steps;
    memory.step = step;
    return memory.steps >= kBefore;
}

}  // namespace mp::twin
