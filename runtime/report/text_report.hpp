#pragma once

#include <string>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

// The verdict, the first cause, the loss scale with the skipped steps, and what was checked; then the processes, a
// table of the steps (long runs: the first and the last of them) and what the twin followed. Safe on a terminal.
// Needs a model with tables.
std::string text_report(const RunModel&, const Judgement&);

}  // namespace mp::trace
