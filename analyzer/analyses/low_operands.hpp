#pragma once

// Ops on low-precision tensors: which operand is one, and whether the op computes in its dtype.

#include <string_view>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

// sum(x, kFloat): the call itself asks for fp32.
bool asks_for_fp32(const Function&, const Call&);

// Whether the operand may hold a tensor.
bool may_be_tensor(const Function&, const Operand&);

// The first low-precision tensor among the arguments; `operand` is nullptr when there is none.
struct LowOperand {
    const Operand* operand = nullptr;
    TensorDType is;
};
LowOperand low_operand(TensorDTypes&, const Function&, const Call&);

// The region decides nothing here: the op computes in the dtype of its operand. Autocast wraps no in-place op,
// listed or not.
bool is_unprotected(const RuleContext&, const Context& region, const Call&);

// PyTorch has no kernel of the op for this dtype, on CUDA or on the CPU, and raises.
bool lacks_kernel(std::string_view op, DType);

// The way of the value and the way of the region are often the same calls: adds those that are not there.
void add_new(std::vector<Note>&, std::vector<Note> more);

}  // namespace mp::lint
