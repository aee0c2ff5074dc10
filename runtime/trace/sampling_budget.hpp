#pragma once

#include <algorithm>
#include <cstdint>

namespace mp::trace {

// Decides in which steps everything is measured, so that the measuring takes at most a share of the run's time. What a
// measured step costs is its time beyond the mean of those that were not, the slowest of these left out: on a busy
// machine one step can wait for long. The first three steps are always measured; the next two never are, because they
// show what a step takes, and neither is one after many that were. Times are those that the host sees.
class SamplingBudget {
public:
    // A share of 0 means unlimited.
    explicit SamplingBudget(double share) : share_(share) {}

    bool limits() const { return share_ > 0; }
    // Whether one more measured step fits. Called at the beginning of the step.
    bool allows(std::int64_t step) const {
        if (!limits() || step < kAlways) return true;
        return plain_steps_ >= kFewestPlain && in_a_row_ < kMostInARow &&
               spent() + cost_of_one() <= share_ * static_cast<double>(all_ns_);
    }
    // A step has ended.
    void add(bool measured, std::int64_t ns) {
        all_ns_ += ns;
        (measured ? measured_ns_ : plain_ns_) += ns;
        ++(measured ? measured_steps_ : plain_steps_);
        if (!measured) slowest_plain_ns_ = std::max(slowest_plain_ns_, ns);
        in_a_row_ = measured ? in_a_row_ + 1 : 0;
    }

    std::int64_t steps() const { return measured_steps_ + plain_steps_; }
    std::int64_t measured_steps() const { return measured_steps_; }
    // The share of all time that measuring took; 0 until two steps were left unmeasured.
    double share() const { return all_ns_ > 0 ? spent() / static_cast<double>(all_ns_) : 0; }

private:
    static constexpr std::int64_t kAlways = 3, kFewestPlain = 2, kMostInARow = 16;

    double spent() const {
        if (plain_steps_ < kFewestPlain) return 0;
        const double plain =
            static_cast<double>(plain_ns_ - slowest_plain_ns_) / static_cast<double>(plain_steps_ - 1);
        return std::max(0.0,
                        static_cast<double>(measured_ns_) - plain * static_cast<double>(measured_steps_));
    }
    double cost_of_one() const {
        return measured_steps_ > 0 ? spent() / static_cast<double>(measured_steps_) : 0;
    }

    double share_;
    std::int64_t all_ns_ = 0, measured_ns_ = 0, plain_ns_ = 0, slowest_plain_ns_ = 0;
    std::int64_t measured_steps_ = 0, plain_steps_ = 0, in_a_row_ = 0;
};

}  // namespace mp::trace
