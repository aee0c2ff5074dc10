#pragma once

// The number that a Python value stands for, where the function itself does not show it: an attribute that the
// constructor sets, or a parameter, by what callers pass or by its default.

#include <optional>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

struct PassedNumber {
    std::optional<double> value;
    bool assumed = false;  // a default, which a caller that is not known can replace
};

// Nothing when two callers pass different numbers.
PassedNumber passed_number(const RuleContext&, const Function&, const Operand&);

}  // namespace mp::lint
