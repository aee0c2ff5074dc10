#pragma once

#include <string>

#include "runtime/fold/run_model.hpp"
#include "runtime/judge/judge.hpp"
#include "runtime/trace/reader.hpp"

namespace mp::trace {

// A table of the steps (long runs: the first and the last of them) and what the twin followed. Safe on a
// terminal.
std::string text_report(const Run&);
// Above it the verdict, the first cause, the loss scale with the skipped steps, and what was checked.
std::string text_report(const Run&, const RunModel&, const Judgement&);

}  // namespace mp::trace
