#pragma once

// Where Python calls C++: functions that a pybind11 module or a torch library exports. The calls get the
// C++ function as their callee, so that both languages are one program.

#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

void link_bindings(std::vector<Unit>& units);

}  // namespace mp::lint
