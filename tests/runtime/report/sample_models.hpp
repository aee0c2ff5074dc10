#pragma once

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

// Folded and judged runs, filled by hand, so that the reports are tested without the rooms before them.

namespace mp::trace::test {

struct Judged {
    RunModel model;
    Judgement judgement;
};

Judged clean_run();
Judged overflow_run();     // fp16 with a loss scale: blocks.2.mlp.up leaves the format at step 17
Judged stagnating_run();   // bf16 weights that no longer move; no loss scale
Judged running_sum_run();  // a bf16 sum in the loss
Judged watched_run();      // no twin, and nothing to draw but the loss
Judged hostile_run();      // names that would like to be more than names
Judged large_run(int layers, int steps);

}  // namespace mp::trace::test
