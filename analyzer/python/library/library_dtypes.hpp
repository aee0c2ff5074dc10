#pragma once

// Finds the dtype in the arguments of a call, and promotes dtypes.

#include <optional>
#include <span>

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

// The dtype that an operand names: a dtype object, or a string like 'float16'. Nothing when the operand
// cannot be a dtype (a number, a tensor, a device); DType::unknown when it may be a dtype that cannot be
// resolved.
std::optional<DType> dtype_named_by(const Operand& operand);

// dtype= (also torch_dtype=) of a call, or a positional dtype object. Nothing when the call has neither.
std::optional<DType> dtype_argument(const Call& call);

// The dtype to which `x.to(...)`, `.type(...)`, `.type_as(...)`, `.astype(...)` convert; the receiver's own
// dtype when they only name a device.
DType retyped(const Call& call);

// The dtype of values written in the source: numbers, and lists of them. Unknown when one of them is
// unknown.
DType dtype_of_values(std::span<const Operand> values, const Function& function, DType default_float);

// The dtype of an op on these operands: the higher category wins (float over integer), then the wider
// dtype. Python numbers do not widen within a category. Unknown when an operand is unknown, or when a value
// that may have no dimensions would decide (such a value does not widen either).
DType promoted(std::span<const Operand> operands, const Function& function, DType default_float);

// The tensors inside one operand: for cat([a, b]) the elements of the list.
std::span<const Operand> elements_of(const Operand& operand, const Function& function);

}  // namespace mp::lint::python
