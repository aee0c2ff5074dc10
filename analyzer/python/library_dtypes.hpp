#pragma once

// How a dtype is asked for in the arguments of a call, and how dtypes meet.

#include <optional>
#include <span>

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

// The dtype that an operand names: a dtype object, or a string like 'float16'. Nothing when the
// operand cannot be a dtype (a number, a tensor, a device); unknown when it may be one that is not
// known.
std::optional<DType> dtype_named_by(const Operand& operand);

// dtype= (also torch_dtype=) of a call, or a positional dtype object. Nothing when the call has
// none.
std::optional<DType> dtype_argument(const Call& call);

// What `x.to(...)`, `.type(...)`, `.type_as(...)`, `.astype(...)` convert to; the receiver's own
// dtype when they only name a device.
DType retyped(const Call& call);

// The dtype of values written in the source: numbers, and lists of them. Unknown when one is not
// known.
DType dtype_of_values(std::span<const Operand> values, const Function& function, DType default_float);

// The dtype of an op on these operands: the higher kind wins (float over integer), then the wider
// one. Numbers of Python do not widen a kind. Unknown when an operand is, or when a value that may
// have no dimensions would decide (it does not widen either).
DType promoted(std::span<const Operand> operands, const Function& function, DType default_float);

// One operand that holds its own tensors: for cat([a, b]) the display's elements.
std::span<const Operand> elements_of(const Operand& operand, const Function& function);

}  // namespace mp::lint::python
