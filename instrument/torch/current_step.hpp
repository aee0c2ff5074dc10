#pragma once

#include <atomic>
#include <cstdint>

namespace mp::twin {

// The step under way, for readers on any thread. StepClock writes it.
struct CurrentStep {
    std::atomic<std::int64_t> number{0};    // k-th step() of the first optimizer
    std::atomic<std::uint64_t> ordinal{0};  // of the next op for which site_of() is called
    std::atomic<bool> in_optimizer{false};  // between before_step and after_step
    std::atomic<bool> backward_ran{false};  // a backward() of this step has begun

    std::uint64_t next_ordinal() noexcept { return ordinal.fetch_add(1, std::memory_order_relaxed); }
};

}  // namespace mp::twin
