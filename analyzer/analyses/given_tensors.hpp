#pragma once

// Tensors that code outside the sources may pass: what users of a library give it.

#include <cstdint>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// Whether a caller that is not seen may pass floating-point data for this parameter: one that is annotated as a
// tensor, that an op of torch takes, or of forward and backward of a module or an autograd function. Not indices,
// masks and labels, as far as names and uses tell.
bool may_be_given(const Function&, std::int32_t param);

}  // namespace mp::lint
