#pragma once

#include <string>

#include "runtime/trace/identity.hpp"
#include "runtime/trace/records.hpp"

namespace mp::trace {

// The file that this process runs; empty: not known.
std::string executable();

// What a recording says of this process as it starts, but for its program, framework and mode.
ProcessRecord describe_process(const Identity&);

}  // namespace mp::trace
