#pragma once

// Kernels that a program offers twice, with half sums and with wide ones, over the same inputs: who calls one of them
// chooses its precision.

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// Whether it adds up in half; a maximum or a product does not.
bool adds_in_half(const Accumulation&);

// The variant that sums in fp32 where this one sums in half: another instantiation of the template, reduce<half, float>
// beside reduce<half, half>, or a function of the same parameters whose name differs in the word for the dtype alone,
// dot_f16_f32 beside dot_f16_f16. nullptr where there is none. A helper has the one of its callers, when each of them
// has one.
const Function* wide_sum_variant(const RuleContext&, const Function&);

// An index for wide_sum_variant(), kept with the context.
class SumVariants;

}  // namespace mp::lint
