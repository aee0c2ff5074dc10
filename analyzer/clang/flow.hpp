#pragma once

#include "analyzer/clang/walk_state.hpp"

namespace mp::lint::walk {

// Gives the calls of a host function their blocks, adds the destructors that run at the ends of
// scopes, and writes Function::flow. To be called once, when the body is walked. Block 0 is the
// entry.
void add_flow(State&);

}  // namespace mp::lint::walk
