#pragma once

#include "analyzer/facts/model.hpp"
#include "clang/AST/ASTContext.h"

namespace mp::lint {

// Walks the user declarations of a parsed unit (concrete functions, template instantiations, lambdas)
// and appends their facts to `out`, counting coverage as it goes. One pass; called for the host pass and
// again for the device pass (the caller merges).
void visit_unit(clang::ASTContext&, Unit& out);

}  // namespace mp::lint
