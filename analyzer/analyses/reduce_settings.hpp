#pragma once

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// MP409 without a call of a collective: engines and hooks that are set to reduce in half.
void reduced_by_setting(const RuleContext&, Findings& out);

}  // namespace mp::lint
