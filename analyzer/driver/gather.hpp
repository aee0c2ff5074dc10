#pragma once

#include <string>
#include <vector>

#include "analyzer/driver/lint.hpp"
#include "analyzer/driver/plan.hpp"

namespace mp::lint {

// The units of a plan as facts, from the cache or from worker processes, in the plan's order.
struct Gathered {
    std::vector<Unit> units;
    std::vector<UnitResult> results;  // one per unit
    std::vector<std::string> warnings;
};

Gathered gather(const Plan& plan, const LintOptions& options, const Parts& parts);

ExtractOptions extract_options(const LintOptions& options, const Plan& plan);

}  // namespace mp::lint
