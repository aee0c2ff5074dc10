#pragma once

#include <algorithm>
#include <cstdint>

namespace mp::trace {

// Decides in which steps everything is measured, so that the measuring takes at most a share of the run's time. What
// a measured step costs is its time beyond the fastest of those that were not: on a busy machine a step can wait for
// long, and a limit must not be lifted by that. So the cost is rather too high, also where steps differ in length.
// The first three steps are always measured; the next two never are, because they show what a step takes, and later
// one is not after 1, 2, 4, 8, and then each 16 that were. Times are those that the host sees.
class SamplingBudget {
public:
    // A share of 0 means unlimited.
    explicit SamplingBudget(double share) : share_(share) {}

    bool limits() const { return share_ > 0; }
    // Whether one more measured step fits. Called at the beginning of the step.
    bool allows(std::int64_t step) const {
        if (!limits() || step < kAlways) return true;
        return plain_steps_ >= kFewestPlain && in_a_row_ < most_in_a_row_ &&
               spent() + cost_of_one() <= share_ * static_cast<double>(all_ns_);
    }
    // A step has ended.
    void add(bool measured, std::int64_t ns) {
        all_ns_ += ns;
        ++(measured ? measured_steps_ : plain_steps_);
        if (measured) {
            measured_ns_ += ns;
            ++in_a_row_;
            return;
        }
        fastest_plain_ns_ = plain_steps_ == 1 ? ns : std::min(fastest_plain_ns_, ns);
        if (in_a_row_ == most_in_a_row_) most_in_a_row_ = std::min(2 * most_in_a_row_, kMostInARow);
        in_a_row_ = 0;
    }

    std::int64_t steps() const { return measured_steps_ + plain_steps_; }
    std::int64_t measured_steps() const { return measured_steps_; }
    // The share of all time that measuring took; 0 until two steps were left unmeasured.
    double share() const { return all_ns_ > 0 ? spent() / static_cast<double>(all_ns_) : 0; }

private:
    static constexpr std::int64_t kAlways = 3, kFewestPlain = 2, kMostInARow = 16;

    double spent() const {
        if (plain_steps_ < kFewestPlain) return 0;
        return std::max(0.0, static_cast<double>(measured_ns_ - fastest_plain_ns_ * measured_steps_));
    }
    double cost_of_one() const {
        return measured_steps_ > 0 ? spent() / static_cast<double>(measured_steps_) : 0;
    }

    double share_;
    std::int64_t all_ns_ = 0, measured_ns_ = 0, fastest_plain_ns_ = 0;
    std::int64_t measured_steps_ = 0, plain_steps_ = 0;
    std::int64_t in_a_row_ = 0, most_in_a_row_ = 1;
};

}  // namespace mp::trace
