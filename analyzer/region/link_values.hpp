#pragma once

// Writes what names stand for over the whole program into the facts, as if each file held the values that it
// imports: dtypes, numbers and texts of operands, the dtypes that follow from them, and the functions that calls
// of values run.

#include <cstdint>
#include <utility>
#include <vector>

#include "analyzer/region/object_classes.hpp"

namespace mp::lint {

// The calls among all that link_values() looks at.
struct LinkedCalls {
    // The calls of a function of which an operand may be written, as indices.
    struct Open {
        Function* function = nullptr;
        std::vector<std::uint32_t> calls;
    };
    std::vector<Open> open;  // functions without such calls are listed if they may return such an operand
    std::vector<ObjectClasses::Caller> stores;                   // `TABLE[name] = f`
    std::vector<ObjectClasses::Caller> options;                  // `parser.add_argument("--dtype")`
    std::vector<std::pair<const Function*, Call*>> of_values;    // `f(x)` where f is not a function's name
    std::vector<std::pair<const Function*, Call*>> of_partials;  // what functools.partial() made, perhaps
    std::vector<std::pair<Function*, Call*>> of_configured;  // their arguments may stand in a configuration
};

// Whether the call runs what a container of modules holds, or a module that it is given.
bool runs_modules(const Call&);

// Whether an operand of the call may be written. Asked before the classes of objects are known.
bool may_write_operands(const Function&, const Call&);
bool may_write_returned(const Function&);

void link_values(std::vector<Unit>& units, const Names& names, GroupsBySymbol<ObjectClasses::Caller> callers,
                 const LinkedCalls& calls);

}  // namespace mp::lint
