#include "analyzer/clang/thread_index.hpp"

#include "clang/AST/ExprCXX.h"

namespace mp::lint {

using namespace clang;

// threadIdx.x is a property in clang's headers and a member elsewhere.
llvm::StringRef coordinate_of(const Expr* e, llvm::StringRef object) {
    e = e->IgnoreParenCasts();
    llvm::StringRef field;
    const Expr* base = nullptr;
    if (const auto* property = dyn_cast<MSPropertyRefExpr>(e)) {
        field = property->getPropertyDecl()->getName();
        base = property->getBaseExpr();
        // The property's object is evaluated once, as an OpaqueValueExpr.
        if (const auto* once = dyn_cast<OpaqueValueExpr>(base)) base = once->getSourceExpr();
    } else if (const auto* member = dyn_cast<MemberExpr>(e);
               member && member->getMemberDecl()->getIdentifier()) {
        field = member->getMemberDecl()->getName();
        base = member->getBase();
    }
    const auto* ref = base ? dyn_cast<DeclRefExpr>(base->IgnoreParenCasts()) : nullptr;
    const auto* variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
    return variable && variable->getIdentifier() && variable->hasGlobalStorage() &&
                   variable->getName() == object
               ? field
               : llvm::StringRef();
}

bool is_position(const Expr* e) {
    return !coordinate_of(e, "threadIdx").empty() || !coordinate_of(e, "blockIdx").empty();
}

}  // namespace mp::lint
