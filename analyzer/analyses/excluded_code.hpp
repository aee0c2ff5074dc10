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

// A constant keeps the program from what makes a finding true, or an option that stays off.
std::optional<Exclusion> exclusion_of_cast(const RuleContext&, const Function&, const SourceSpan& at);

// An option that stays off keeps the region closed that opens here.
std::optional<Exclusion> exclusion_of_region(const RuleContext&, const Function&, const SourceSpan& opened);

// A parameter of the function decides whether control comes here, and no call of it passes a constant that says so.
bool is_open_choice(const RuleContext&, const Function&, const SourceSpan& at);

}  // namespace mp::lint
