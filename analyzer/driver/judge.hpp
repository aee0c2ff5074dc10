#pragma once

#include <vector>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// The findings of the rules, in the order of the rules. They run on up to `jobs` threads.
Findings judge(const std::vector<const Rule*>& rules, const RuleContext&, int jobs);

}  // namespace mp::lint
