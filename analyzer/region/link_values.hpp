#pragma once

// Writes what names stand for over the whole program into the facts, as if each file held the values that it
// imports: dtypes, numbers and texts of operands, the dtypes that follow from them, and the functions that calls
// of values run.

#include <utility>
#include <vector>

#include "analyzer/region/object_classes.hpp"

namespace mp::lint {

struct LinkedCalls {
    std::vector<std::pair<const Function*, Call*>> of_values;    // `f(x)` where f is not a function's name
    std::vector<std::pair<const Function*, Call*>> of_partials;  // what functools.partial() made, perhaps
};

void link_values(std::vector<Unit>& units, const Names& names, GroupsBySymbol<ObjectClasses::Caller> callers,
                 const LinkedCalls& calls);

}  // namespace mp::lint
