#pragma once

// Writes what names stand for over the whole program into the facts, as if each file held the values that it
// imports: dtypes, numbers and texts of operands, the dtypes that follow from them, and the functions that calls
// of values run.

#include <vector>

#include "analyzer/region/object_classes.hpp"

namespace mp::lint {

// `open`: calls of values, `f(x)` where f is not a function's name.
void link_values(std::vector<Unit>& units, const Names& names, GroupsBySymbol<ObjectClasses::Caller> callers,
                 const std::vector<std::pair<const Function*, Call*>>& open);

}  // namespace mp::lint
