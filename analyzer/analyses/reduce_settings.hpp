#pragma once

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// Whether a reduction in Python only rounds and cannot overflow, so that its finding is a note: bf16 has the range of
// fp32, and if each rank divides before the sum, the sum is not larger than the largest gradient.
bool only_rounds(DType, bool divides_first);

// Adds the findings of MP409 at settings of engines and hooks that reduce in fp16 or bf16. They call no collective.
void reduced_by_setting(const RuleContext&, Findings& out);

}  // namespace mp::lint
