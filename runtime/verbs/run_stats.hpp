#pragma once

#include "runtime/fold/run_model.hpp"

namespace mp::trace {

// What --stats counts of a run: its recordings, their bytes, its steps, and the rows of ops and tensors.
void count_run(const RunModel&);

}  // namespace mp::trace
