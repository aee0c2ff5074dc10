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

// The dtype and shape of a C++ type. Looks through typedefs, references, cv, pointers, arrays and packed
// vectors to the element dtype. Half classes (__half, __nv_bfloat16, c10::Half, ...) are recognised by
// their qualified canonical name. `float*` is {fp32, pointer}; `__half2` is {fp16, vec}; at::Tensor is
// {unknown, tensor}.
ElementType element_type(clang::QualType);

// The initial value of a variable, if known. `T x(f())` with an undeclared f is a ParenListExpr, the only
// expression without a type; its value counts as unknown.
const clang::Expr* start_value(const clang::VarDecl&);

// Source text of an expression, with blanks collapsed, cut at 80 bytes.
Symbol spelling(const clang::Stmt&, const clang::ASTContext&);

// The expansion location: a macro is reported at its use in user code.
SourceSpan span_of(clang::SourceRange, const clang::ASTContext&);

}  // namespace mp::lint
