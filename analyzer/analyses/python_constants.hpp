#pragma once

// Numbers that are combined with a tensor in Python: the scalar of an op, the fill value of a factory, or
// an epsilon, also a default one.

#include <vector>

#include "analyzer/analyses/constants.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"

namespace mp::lint {

// The uses with a low-precision tensor, without branches that test the dtype first.
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
