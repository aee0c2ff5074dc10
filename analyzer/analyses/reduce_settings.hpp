#pragma once

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// In Python a reduction is a note where nothing can overflow: bf16 has the range of fp32, and ranks that divide before
// they add get no larger total.
bool only_rounds(DType, bool divides_first);

// MP409 without a call of a collective: engines and hooks that are set to reduce in half.
void reduced_by_setting(const RuleContext&, Findings& out);

}  // namespace mp::lint
