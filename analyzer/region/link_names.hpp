#pragma once

// Resolves the names that one Python file cannot resolve alone: re-exports, modules beside a
// script, inherited methods, and the classes of objects that other functions make. Rewrites names
// and callees of calls to their meaning in the whole program.

#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

void link_names(std::vector<Unit>& units, int threads);

}  // namespace mp::lint
