#pragma once

// Code that only tries the program out. Half that nothing else passes says little about the program: a test compares
// precisions on purpose, and a benchmark or a demonstration has nothing to lose.

#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// In a test or benchmark, in a function named so (test_scan(), profile()), or in the main block of a Python file whose
// code other files of the program run.
bool is_trial(const RuleContext&, const Function&, const Call&);
bool is_trial(const RuleContext&, const SourceSpan&);

// The calls that name the function, those of the program itself before those that only try it out.
std::vector<const Call*> callers_by_weight(const RuleContext&, const Function&);

}  // namespace mp::lint
