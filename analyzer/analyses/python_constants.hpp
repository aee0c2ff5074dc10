#pragma once

// Where a number meets a tensor in Python: as the scalar of an op, as what a factory fills with, or as
// an epsilon, also one that the call leaves at its default.

#include <vector>

#include "analyzer/analyses/constants.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"

namespace mp::lint {

// Those that meet a low-precision tensor. Branches that ask for the dtype first are left out.
void python_constant_uses(const RuleContext&, TensorDTypes&, std::vector<ConstantUse>& out);

// x[i] = value
bool is_item_assignment(std::string_view name);

// `x` of torch.finfo(x.dtype).min, or of its max, tiny or eps, is the operand of the call.
struct Limit {
    const Call* finfo = nullptr;
    std::string_view which;  // "min"
};
Limit limit_of(const Function&, const Operand&);

}  // namespace mp::lint
