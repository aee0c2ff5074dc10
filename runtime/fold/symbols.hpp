#pragma once

#include "runtime/fold/run_model.hpp"

namespace mp::launch {

// Turns the places of a C++ program's calls, "sharded_gpt+0x1f3c4", into "model.cpp:57", by addr2line and the
// executable that the recording names. What cannot be resolved (no addr2line, another or no executable, no
// line table) stays as it is.
void resolve_sources(trace::RunModel&);

}  // namespace mp::launch
