#pragma once

#include <vector>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// What the rules say, one after the other; they run on up to `jobs` threads.
Findings judge(const std::vector<const Rule*>& rules, const RuleContext&, int jobs);

}  // namespace mp::lint
