#pragma once

#include "runtime/fold/run_model.hpp"

namespace mp::launch {

// Turns the places of a C++ program's calls, "sharded_gpt+0x1f3c4", into "model.cpp:57", with addr2line and the
// executable that the recording names. A place that cannot be resolved (no addr2line, no executable or another one,
// no line table) stays unchanged.
void resolve_sources(trace::RunModel&);

}  // namespace mp::launch
