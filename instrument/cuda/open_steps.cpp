#include "instrument/cuda/open_steps.hpp"

#include <utility>

namespace mp::raw {
namespace {

// Plain data, so that a thread's end frees nothing.
thread_local std::int64_t t_step = -1;  // whose range is open on this thread
thread_local bool t_works = false;      // this thread has launched

}  // namespace

bool OpenSteps::begin(std::int64_t number, bool of_thread) {
    if (of_thread && open_.contains(t_step)) return false;
    auto at = open_.find(number);
    if (at == open_.end()) {
        // A thread that only loads data is not in a step of its own.
        if (!open_.empty() && !(of_thread && t_works)) return false;
        if (open_.empty())
            phases_of(-1) = 0;
        else
            newest_ = nullptr;
        phases_of(number) = 0;
        at = open_.emplace(number, Open{newest(), 0}).first;
    }
    ++at->second.ranges;
    if (of_thread) t_step = number;
    return true;
}

std::vector<OpenSteps::Ended> OpenSteps::end(std::int64_t number) {
    const auto at = open_.find(number);
    if (at == open_.end()) return {};
    --at->second.ranges;
    return take_ended();
}

std::vector<OpenSteps::Ended> OpenSteps::end_of_thread() { return end(std::exchange(t_step, -1)); }

// A step does not end before those with lower numbers, unless they are left open for long.
std::vector<OpenSteps::Ended> OpenSteps::take_ended() {
    std::vector<Ended> ended;
    while (!open_.empty() && (open_.begin()->second.ranges <= 0 || open_.size() > kMostOpen))
        ended.push_back(take(open_.begin()));
    return ended;
}

OpenSteps::Ended OpenSteps::take(std::map<std::int64_t, Open>::iterator at) {
    Ended ended{at->first, std::move(at->second.tally), phases_of(at->first).exchange(0)};
    if (open_.size() == 1) ended.phases |= phases_of(-1).exchange(0);
    open_.erase(at);
    if (ended.tally == newest_) newest_ = open_.empty() ? nullptr : open_.rbegin()->second.tally;
    return ended;
}

OpenSteps::Ended OpenSteps::end_now() {
    Ended ended{-1, newest(), phases_of(own()).exchange(0) | phases_of(-1).exchange(0)};
    open_.clear();
    newest_ = nullptr;
    return ended;
}

std::vector<OpenSteps::Ended> OpenSteps::end_all() {
    std::vector<Ended> all;
    while (!open_.empty()) all.push_back(take(open_.begin()));
    if (newest_) all.push_back({-1, std::exchange(newest_, nullptr), phases_of(-1).exchange(0)});
    std::erase_if(all, [](const Ended& e) { return e.tally->calls == 0; });
    return all;
}

const std::shared_ptr<StepTally>& OpenSteps::work() {
    t_works = true;
    const auto own = open_.find(t_step);
    return own == open_.end() ? newest() : own->second.tally;
}

const std::shared_ptr<StepTally>& OpenSteps::newest() {
    if (!newest_) newest_ = std::make_shared<StepTally>();
    return newest_;
}

std::int64_t OpenSteps::own() const { return open_.contains(t_step) ? t_step : -1; }

std::atomic<unsigned>& OpenSteps::phases_of(std::int64_t number) noexcept {
    return phases_[static_cast<std::size_t>(number < 0 ? 0 : number % kSlots + 1)];
}

// What runs in a range of a phase belongs to the step.
void OpenSteps::saw(Phase phase) noexcept {
    if (phase != Phase::backward && phase != Phase::optimizer) return;
    const unsigned bit = 1u << static_cast<unsigned>(phase);
    std::atomic<unsigned>& phases = phases_of(t_step);
    if ((phases.load(std::memory_order_relaxed) & bit) == 0) phases.fetch_or(bit, std::memory_order_relaxed);
}

}  // namespace mp::raw
