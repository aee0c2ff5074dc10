#include "instrument/torch/coverage_counters.hpp"

#include <cmath>
#include <string>

#include "instrument/torch/tensors.hpp"

namespace mp::twin {
namespace {

std::uint64_t reset(std::atomic<std::uint64_t>& counter) noexcept {
    return counter.exchange(0, std::memory_order_relaxed);
}

// A NaN is worse than every number.
bool worse(double distance, double worst) { return !std::isnan(worst) && !(distance <= worst); }

}  // namespace

void CoverageCounters::shadowed(std::uint64_t bytes) noexcept {
    add(shadowed_, 1);
    add(shadowed_bytes_, bytes);
}

void CoverageCounters::unshadowed(std::string_view op, std::string_view why, std::uint64_t bytes) {
    add(unshadowed_, 1);
    add(unshadowed_bytes_, bytes);
    notes_.say(trace::NoteKind::not_observed, std::string(op) + ": " + std::string(why));
}

void CoverageCounters::failed(std::string_view op, std::string_view what, std::uint64_t bytes) {
    add(failed_, 1);
    unshadowed(op, "the twin's op failed: " + std::string(what), bytes);
}

void CoverageCounters::regrouped(std::string_view layer, std::string_view why) {
    add(regrouped_, 1);
    notes_.say(trace::NoteKind::not_observed, "order of a sum of gradients in " +
                                                  (layer.empty() ? "an unnamed layer" : std::string(layer)) +
                                                  ": " + std::string(why));
}

void CoverageCounters::drawn(std::string_view op, std::string_view dtype) {
    add(drawn_, 1);
    notes_.say(trace::NoteKind::not_observed, std::string(op) + ": draws other numbers in " +
                                                  std::string(dtype) +
                                                  " than in fp32; the twin has the run's");
}

void CoverageCounters::outside(std::string_view where, std::uint64_t bytes) {
    add(outside_, 1);
    if (control_.twin_active() && !control_.local()) {
        add(unshadowed_, 1);
        add(unshadowed_bytes_, bytes);
    }
    notes_.say(trace::NoteKind::not_observed, where);
}

void CoverageCounters::seed(std::string_view op, Seed why, std::uint64_t bytes) {
    add(seeds_, 1);
    add(seeded_bytes_, bytes);
    if (why == Seed::stale) add(stale_, 1);
    if (why == Seed::external) add(external_, 1);
    if (now_.number < 1) return;  // step 0 makes every shadow
    const char* reason = why == Seed::stale  ? "the program wrote behind the dispatcher"
                         : why == Seed::lost ? "the twin's history was lost"
                                             : "data from outside the dispatcher";
    notes_.say(trace::NoteKind::seed, std::string(op) + ": " + reason);
}

void CoverageCounters::decision(std::string_view op) {
    notes_.say(
        trace::NoteKind::decision,
        std::string(op) +
            ": the program decides by its result; where the twin's differs, the twin goes the program's way");
}

void CoverageCounters::leak(std::string_view op, double real, double twin) {
    add(leaks_, 1);
    const double distance = std::fabs(real - twin);
    double worst = worst_leak_.load(std::memory_order_relaxed);
    while (worse(distance, worst) &&
           !worst_leak_.compare_exchange_weak(worst, distance, std::memory_order_relaxed)) {
    }
    notes_.say(trace::NoteKind::leak, op);
}

void CoverageCounters::leak(trace::StepRecord& ended, std::string_view op, double real, double twin) {
    ++ended.coverage.leaks;
    const double distance = std::fabs(real - twin);
    if (worse(distance, ended.coverage.worst_leak)) ended.coverage.worst_leak = distance;
    notes_.say(trace::NoteKind::leak, op, ended.step.value);
}

void CoverageCounters::take(trace::StepRecord& step) {
    trace::Coverage& c = step.coverage;
    for (std::size_t type = 0; type < by_dtype_.size(); ++type)
        if (const std::uint64_t ops = reset(by_dtype_[type])) {
            step.dtypes.push_back({dtype_of(static_cast<at::ScalarType>(type)), ops});
            c.ops += ops;
        }
    c.shadowed = reset(shadowed_);
    c.shadowed_bytes = reset(shadowed_bytes_);
    c.unshadowed = reset(unshadowed_);
    c.unshadowed_bytes = reset(unshadowed_bytes_);
    c.failed = reset(failed_);
    c.seeds = reset(seeds_);
    c.seeded_bytes = reset(seeded_bytes_);
    c.external = reset(external_);
    c.stale = reset(stale_);
    c.outside = reset(outside_);
    c.flips = reset(flips_);
    c.leaks = reset(leaks_);
    c.regrouped = reset(regrouped_);
    c.relaid = reset(relaid_);
    c.drawn = reset(drawn_);
    c.worst_leak = worst_leak_.exchange(0, std::memory_order_relaxed);
}

}  // namespace mp::twin
