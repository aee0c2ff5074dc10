#pragma once

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// MP409 where nobody calls a collective: engines and hooks that are told to reduce in half.
void reduced_by_setting(const RuleContext&, Findings& out);

}  // namespace mp::lint
