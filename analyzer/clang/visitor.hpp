#pragma once

#include "analyzer/facts/model.hpp"
#include "clang/AST/ASTContext.h"

namespace mp::lint {

// Walks the user declarations of a parsed unit (concrete functions, template instantiations, lambdas),
// appends their facts to `out` and counts coverage. Handles one pass: called for the host pass and again
// for the device pass; the caller merges them.
void visit_unit(clang::ASTContext&, Unit& out);

}  // namespace mp::lint
