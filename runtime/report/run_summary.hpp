#pragma once

#include <string>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

// What a run ends with on standard error: at most 8 lines, each beginning with "mp-trace: ", the last naming
// the next command. Safe on a terminal. Ranks of which nothing is known are named.
std::string run_summary(const RunModel&, const Judgement&);

}  // namespace mp::trace
