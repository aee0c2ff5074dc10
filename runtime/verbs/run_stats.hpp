#pragma once

#include "runtime/fold/run_model.hpp"

namespace mp::trace {

// Counts for --stats: the recordings of a run, their bytes, its steps, and the rows of ops and tensors.
void count_run(const RunModel&);

}  // namespace mp::trace
