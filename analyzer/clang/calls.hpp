#pragma once

// Calls as facts. Each is added after its arguments were walked: calls stand in evaluation order.

#include "analyzer/clang/callees.hpp"
#include "analyzer/clang/walk_state.hpp"

namespace mp::lint::walk {

void add_call(const clang::CallExpr&, State&);
void add_constructor(const clang::CXXConstructExpr&, State&);
void add_assembly(const clang::GCCAsmStmt&, State&);

// The destructors that run for an object of this class, as calls; `object` is what dies.
std::vector<Call> destructor_calls(const clang::CXXRecordDecl&, const Operand& object, const SourceSpan&,
                                   State&);
void add_delete(const clang::CXXDeleteExpr&, State&);

}  // namespace mp::lint::walk
