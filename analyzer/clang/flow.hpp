#pragma once

#include "analyzer/clang/walk_state.hpp"

namespace mp::lint::walk {

// Assigns the calls of a host function to blocks, adds the destructors that run at the ends of scopes, and
// sets Function::flow. Call it once, after the body was walked. Block 0 is the entry.
void add_flow(State&);

}  // namespace mp::lint::walk
