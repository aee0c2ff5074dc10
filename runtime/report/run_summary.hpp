#pragma once

#include <string>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"

namespace mp::trace {

// The summary that a run prints on standard error at its end: at most 8 lines, each beginning with "mp-trace: ". The
// last line names the next command. Safe on a terminal. The summary names ranks without a recording.
std::string run_summary(const RunModel&, const Judgement&);

}  // namespace mp::trace
