#pragma once

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// MP306 in Python: tensors of positions, indices and counts that are made in half or cast to it.
void python_int_in_half(const RuleContext&, Findings& out);

}  // namespace mp::lint
