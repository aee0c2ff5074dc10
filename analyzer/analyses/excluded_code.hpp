#pragma once

// Code that the program keeps itself from, as far as its own text tells: a constant or an option that is off, or what
// every call passes.

#include <optional>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// Why control does not come to a place of a Python function, and where that is decided.
struct Exclusion {
    SourceSpan span;
    const char* why;
};

// A constant, an option or every call of the function excludes the place, or all that call the function are excluded.
std::optional<Exclusion> exclusion_of(const RuleContext&, const Function&, const SourceSpan& at);

// The constant of the file that keeps control from what stands here: `DEBUG = False`, and `if DEBUG:` around it.
std::optional<Exclusion> exclusion_by_constant(const RuleContext&, const Function&, const SourceSpan& at);

// A parameter of the function decides whether control comes here, and no call of it passes a constant that says so.
bool is_open_choice(const RuleContext&, const Function&, const SourceSpan& at);

}  // namespace mp::lint
