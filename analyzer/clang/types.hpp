#pragma once

#include <string>

#include "analyzer/facts/model.hpp"
#include "clang/AST/Type.h"

namespace clang {
class Expr;
class VarDecl;
}  // namespace clang

namespace mp::lint {

struct ElementType {
    DType dtype = DType::unknown;
    Shape shape = Shape::other;
};

// The numerics view of a C++ type: looks through typedefs, references, cv, pointers, arrays and
// packed vectors to the element dtype. Half classes (__half, __nv_bfloat16, c10::Half, ...) are known
// by their qualified canonical name. `float*` is {fp32, pointer}; `__half2` is {fp16, vec};
// at::Tensor is {unknown, tensor}.
ElementType element_type(clang::QualType);

// What a variable starts with, when it is known. `T x(f())` with an f that is not declared is
// left as a list in parentheses, the one expression without a type: that is not known.
const clang::Expr* start_value(const clang::VarDecl&);

// Source text of an expression with runs of blanks collapsed, cut at 80 bytes.
Symbol spelling(const clang::Stmt&, const clang::ASTContext&);

// Expansion location: macros are reported where they are written in user code.
SourceSpan span_of(clang::SourceRange, const clang::ASTContext&);

}  // namespace mp::lint
