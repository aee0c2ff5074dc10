#include "instrument/torch/control.hpp"

#include <algorithm>
#include <utility>

namespace mp::twin {

bool lists(const trace::Options& options, Rank rank) {
    return options.ranks.empty() ||
           std::any_of(options.ranks.begin(), options.ranks.end(), [rank](const trace::RankRange& r) {
               return rank.value >= r.first && rank.value <= r.last;
           });
}

Control::Control(trace::Options options, trace::Identity identity, bool has_python)
    : options_(std::move(options)), identity_(std::move(identity)), has_python_(has_python) {}

void Control::learn_rank(std::int32_t rank, std::int32_t local_rank, std::int32_t world_size) {
    const std::lock_guard lock(mutex_);
    if (identity_.rank.known() || rank < 0) return;
    identity_.launcher = "torch.distributed";
    identity_.rank = Rank{rank};
    identity_.local_rank = local_rank;
    identity_.world_size = world_size;
}

void Control::begin_step(bool with_twin) {
    const std::lock_guard lock(mutex_);
    const bool active = armed() && with_twin;
    twin_active_ = active && !given_up_;
    if (given_up_) attends_only_ = active && follows();
}

bool Control::give_up() {
    const std::lock_guard lock(mutex_);
    if (given_up_.exchange(true)) return false;
    if (twin_active_.exchange(false)) attends_only_ = follows();
    return true;
}

bool Control::disarm(bool attend) {
    const std::lock_guard lock(mutex_);
    const bool was_armed = armed();
    if (attend && was_armed) attends_only_ = twin_active();
    armed_ = false;
    twin_active_ = false;
    return was_armed;
}

void Control::after_fork_in_child() noexcept {
    armed_ = false;
    twin_active_ = false;
    attends_only_ = false;
}

}  // namespace mp::twin
