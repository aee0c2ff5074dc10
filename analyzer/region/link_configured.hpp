#pragma once

// Writes what configurations give into the calls that take it from there: `Trainer(**cfg.trainer)` and
// `hydra.utils.instantiate(cfg.model)`, as if the code had the class and its arguments.

#include <vector>

#include "analyzer/region/link_values.hpp"

namespace mp::lint {

// Makes the call one that makes an object of a class of the program.
void construct(Call&, Symbol type, const Names&);

// Whether a configuration may hold the arguments of the call. Asked before names are resolved over the program.
bool may_be_configured(const Call&);

// Returns the calls of `calls.of_configured` that have a function of the program to run now, and the functions
// that call them.
std::vector<ObjectClasses::Caller> link_configured(const std::vector<Unit>& units, const Names& names,
                                                   GroupsBySymbol<ObjectClasses::Caller> callers,
                                                   const LinkedCalls& calls);

}  // namespace mp::lint
