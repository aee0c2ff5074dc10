#pragma once

// Calls as facts. A call is added after its arguments were walked, so calls are in evaluation order.

#include "analyzer/clang/callees.hpp"
#include "analyzer/clang/walk_state.hpp"

namespace mp::lint::walk {

void add_call(const clang::CallExpr&, State&);
void add_constructor(const clang::CXXConstructExpr&, State&);
void add_assembly(const clang::GCCAsmStmt&, State&);

// The destructors that run when `object` of this class dies, as calls.
std::vector<Call> destructor_calls(const clang::CXXRecordDecl&, const Operand& object, const SourceSpan&,
                                   State&);
void add_delete(const clang::CXXDeleteExpr&, State&);

}  // namespace mp::lint::walk
