#pragma once

#include <cstdint>

#include "instrument/cuda/step_tally.hpp"

namespace mp::raw {

// Which steps the program skipped, by the ranges that it names: a step with a backward and without an update. Steps are
// judged in their order, and some only when later ones have ended.
class Skips {
public:
    void ended(const StepTally&);
    // Sets whether the step was skipped, and which op lost the weights. False: that is not known yet.
    bool settle(StepTally&, bool can_wait);

private:
    void mark_unguarded(trace::StepRecord&, bool updated, bool lost_gradients);

    // Steps so far with a range of backward; of those, with one of the optimizer; of the others, with finite values.
    std::uint64_t trained_ = 0, updated_ = 0, idle_ = 0;
    std::int64_t updated_in_ = -1;  // the step before, if its optimizer ran on gradients that were not finite
};

}  // namespace mp::raw
