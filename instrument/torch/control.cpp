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

void Control::begin_step(bool with_twin) {
    const std::lock_guard lock(mutex_);
    twin_active_ = armed() && with_twin;
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
