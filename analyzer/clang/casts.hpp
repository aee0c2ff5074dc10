#pragma once

// Conversions between floating formats, and from integers to low precision, in every spelling of CUDA, ATen
// and C++. One fact per physical conversion.

#include "analyzer/clang/walk_state.hpp"

namespace mp::lint::walk {

// Call these after the operands of the expression were walked, so that inner casts are known.
void add_construction(const clang::CXXConstructExpr&, const Use&, State&);  // __half(x)
void add_conversion(const clang::CXXMemberCallExpr&, const Use&, State&);   // h.operator float()
void add_assignment(const clang::CXXOperatorCallExpr&, State&);             // h = x
void add_builtin_cast(const clang::CastExpr&, const Use&, State&);          // (_Float16)x, (half*)p
// __float2half(x) and similar: returns true when the callee is such an intrinsic.
bool add_intrinsic(const clang::CallExpr&, const Use&, State&);

bool is_conversion_intrinsic(const clang::FunctionDecl&);
// A class that represents a number: __half, c10::BFloat16, __half2.
bool is_half_class(clang::QualType);

}  // namespace mp::lint::walk
