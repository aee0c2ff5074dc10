#pragma once

// Values as facts: arguments, results, sources of casts.

#include "analyzer/clang/walk_state.hpp"

namespace mp::lint::walk {

Operand make_operand(const clang::Expr&, const State&);

// "acc", "this->scale", "cfg.amp", "x" for &x; empty for anything that is not a name.
std::string name_of_value(const clang::Expr&);

// The value of a constant expression in the form of Operand::constant; empty when it is not constant.
std::string constant_of(const clang::Expr&, const State&);

// The dtype that an argument names: torch::kHalf, options.dtype(torch::kHalf), x.scalar_type().
DType dtype_named_by(const clang::Expr&, const State&);

// The written expression, below converting constructors of library classes (Scalar, optional,
// TensorOptions).
const clang::Expr* before_conversions(const clang::Expr*);

}  // namespace mp::lint::walk
