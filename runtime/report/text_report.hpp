#pragma once

#include <string>

#include "runtime/trace/reader.hpp"

namespace mp::trace {

// A table of the steps (long runs: the first and the last of them) and what the twin followed. Safe on a
// terminal.
std::string text_report(const Run&);

}  // namespace mp::trace
