#pragma once

// What one Python file cannot tell about its names: re-exports, modules beside a script, inherited
// methods, and the classes of objects that come from other functions. Names and callees of calls are
// rewritten to what they mean in the whole program.

#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

void link_names(std::vector<Unit>& units, int threads);

}  // namespace mp::lint
