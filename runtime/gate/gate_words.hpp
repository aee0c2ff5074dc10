#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gate/gate.hpp"

// Shared by the writers of the gate's results.

namespace mp::trace {

std::string_view name_of(Verdict);
std::string_view name_of(RuleResult::State);
std::string place_of(const Finding&);     // "blocks.2.fc2 · aten::addmm · forward · step 5 · rank 1"
std::string title_of(const RuleResult&);  // of the rule pack
std::size_t count_of(const GateResult&, RuleResult::State);
std::string suppression_text(const Suppression&);

}  // namespace mp::trace
