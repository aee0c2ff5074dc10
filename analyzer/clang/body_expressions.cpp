// The part of BodyWalker for expressions: evaluation order, and the destination of each value.

#include "analyzer/clang/body.hpp"
#include "analyzer/clang/body_walker.hpp"
#include "analyzer/clang/calls.hpp"
#include "analyzer/clang/casts.hpp"
#include "analyzer/clang/operands.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/StmtCXX.h"

namespace mp::lint::walk {
namespace {

// The same destination, for a conversion that is not directly below a conversion node.
Use passed_on(const Use& use, CastForm form = CastForm::explicit_) {
    Use out = use;
    out.form = form;
    return out;
}

bool is_constructor_or_user_conversion(clang::CastKind kind) {
    return kind == clang::CK_ConstructorConversion || kind == clang::CK_UserDefinedConversion;
}

// __stcs(p, v) and similar intrinsics store v through p.
bool is_store_intrinsic(const clang::FunctionDecl& f, const clang::CallExpr& e) {
    return f.getIdentifier() && f.getName().starts_with("__st") && e.getNumArgs() == 2 &&
           e.getArg(0)->getType()->isPointerType() && in_system_header(f);
}

}  // namespace

void BodyWalker::expressions(const clang::Stmt& s, const Use& use) {
    for (const clang::Stmt* child : s.children()) {
        if (!child) continue;
        if (const auto* e = llvm::dyn_cast<clang::Expr>(child))
            expression(e, use);
        else
            statement(child);
    }
}

void BodyWalker::expression(const clang::Expr* e, const Use& use) {
    if (!e) return;
    ++coverage_.statements;
    switch (e->getStmtClass()) {
        case clang::Stmt::DeclRefExprClass:
        case clang::Stmt::IntegerLiteralClass:
        case clang::Stmt::FloatingLiteralClass:
        case clang::Stmt::StringLiteralClass:
        case clang::Stmt::CXXThisExprClass:
        case clang::Stmt::CXXDefaultArgExprClass:         // belongs to the callee
        case clang::Stmt::UnaryExprOrTypeTraitExprClass:  // does not evaluate its operand
        case clang::Stmt::CXXNoexceptExprClass:
        case clang::Stmt::CXXTypeidExprClass:
        case clang::Stmt::RequiresExprClass:
            return;
        case clang::Stmt::ParenExprClass:
        case clang::Stmt::ConstantExprClass:
        case clang::Stmt::ExprWithCleanupsClass:
        case clang::Stmt::MaterializeTemporaryExprClass:
        case clang::Stmt::CXXBindTemporaryExprClass:
        case clang::Stmt::SubstNonTypeTemplateParmExprClass:
        case clang::Stmt::InitListExprClass:
            return expressions(*e, use);
        case clang::Stmt::ConditionalOperatorClass:
            return conditional(*llvm::cast<clang::ConditionalOperator>(e), use);
        case clang::Stmt::BinaryOperatorClass:
        case clang::Stmt::CompoundAssignOperatorClass:
            return binary(*llvm::cast<clang::BinaryOperator>(e), use);
        case clang::Stmt::UnaryOperatorClass:
            return unary(*llvm::cast<clang::UnaryOperator>(e));
        case clang::Stmt::CXXConstructExprClass:
        case clang::Stmt::CXXTemporaryObjectExprClass:
            return construction(*llvm::cast<clang::CXXConstructExpr>(e), use);
        case clang::Stmt::CXXOperatorCallExprClass:
            return operator_call(*llvm::cast<clang::CXXOperatorCallExpr>(e));
        case clang::Stmt::CXXMemberCallExprClass:
            return member_call(*llvm::cast<clang::CXXMemberCallExpr>(e), use);
        case clang::Stmt::CUDAKernelCallExprClass:
            expression(llvm::cast<clang::CUDAKernelCallExpr>(e)->getConfig());
            return call(*llvm::cast<clang::CallExpr>(e), use);
        case clang::Stmt::UserDefinedLiteralClass:
        case clang::Stmt::CallExprClass:
            return call(*llvm::cast<clang::CallExpr>(e), use);
        case clang::Stmt::LambdaExprClass:
            lambdas_.push_back(llvm::cast<clang::LambdaExpr>(e));
            for (const clang::Expr* init : lambdas_.back()->capture_inits()) expression(init);
            return;
        case clang::Stmt::CXXDefaultInitExprClass:
            return expression(llvm::cast<clang::CXXDefaultInitExpr>(e)->getExpr(), use);
        case clang::Stmt::CXXRewrittenBinaryOperatorClass:
            return expression(llvm::cast<clang::CXXRewrittenBinaryOperator>(e)->getSemanticForm(), use);
        case clang::Stmt::CXXDeleteExprClass:
            expressions(*e, {});
            return add_delete(*llvm::cast<clang::CXXDeleteExpr>(e), state_);
        case clang::Stmt::StmtExprClass:
            return void(statement(llvm::cast<clang::StmtExpr>(e)->getSubStmt()));
        case clang::Stmt::RecoveryExprClass:
            ++coverage_.unresolved;
            return expressions(*e, {});
        default:
            if (const auto* c = llvm::dyn_cast<clang::CastExpr>(e)) return cast(*c, use);
            return expressions(*e, {});
    }
}

void BodyWalker::cast(const clang::CastExpr& e, const Use& use) {
    const auto* implicit = llvm::dyn_cast<clang::ImplicitCastExpr>(&e);
    const bool inserted = implicit && !implicit->isPartOfExplicitCast();
    const bool conversion = is_constructor_or_user_conversion(e.getCastKind());
    // A conversion function or constructor is directly below the node that shows whether it was written or
    // implicit. Below an explicit cast, the implicit node in between keeps the form of the cast.
    CastForm form = CastForm::explicit_;
    if (conversion && inserted) form = CastForm::implicit;
    if (!conversion && implicit) form = use.form;
    expression(e.getSubExpr(), passed_on(use, form));
    add_builtin_cast(e, use, state_);
}

void BodyWalker::construction(const clang::CXXConstructExpr& e, const Use& use) {
    if (e.getNumArgs() >= 1 && e.getConstructor()->isCopyOrMoveConstructor()) {
        expression(e.getArg(0), use);
        return;
    }
    if (is_half_class(e.getType())) {
        for (const clang::Expr* argument : e.arguments()) expression(argument, passed_on(use));
        return add_construction(e, use, state_);
    }
    Use argument_use{.purpose = Purpose::argument};
    if (e.getNumArgs() > 0) argument_use.function = state_.callees.of(*e.getConstructor()).name;
    for (const clang::Expr* argument : e.arguments()) expression(argument, argument_use);
    add_constructor(e, state_);
}

void BodyWalker::binary(const clang::BinaryOperator& e, const Use& use) {
    const clang::BinaryOperatorKind op = e.getOpcode();
    if (op == clang::BO_Assign) {
        expression(e.getRHS(), {.purpose = Purpose::store, .target = e.getLHS()});
        expression(e.getLHS());
        return assigned(*e.getLHS(), e.getRHS());
    }
    if (e.isCompoundAssignmentOp()) {
        const bool sums = op == clang::BO_AddAssign || op == clang::BO_SubAssign;
        expression(e.getRHS(),
                   {.purpose = sums ? Purpose::accumulate : Purpose::operand, .target = e.getLHS()});
        expression(e.getLHS());
        return assigned(*e.getLHS(), nullptr);
    }
    if (e.isLogicalOp()) return logical(e);
    if (op == clang::BO_Comma) {
        expression(e.getLHS());
        return expression(e.getRHS(), use);
    }
    expression(e.getLHS(), {.purpose = Purpose::operand});
    expression(e.getRHS(), {.purpose = Purpose::operand});
}

void BodyWalker::logical(const clang::BinaryOperator& e) {
    expression(e.getLHS());
    const auto known = constant_condition(e.getLHS(), state_.ast);
    if (known && *known == (e.getOpcode() == clang::BO_LOr)) return;  // the right side never runs
    const auto mark = state_.definitions.mark();
    expression(e.getRHS());
    state_.definitions.forget(mark);
}

void BodyWalker::unary(const clang::UnaryOperator& e) {
    const bool arithmetic = e.isArithmeticOp();
    expression(e.getSubExpr(), arithmetic ? Use{.purpose = Purpose::operand} : Use{});
    if (e.isIncrementDecrementOp()) assigned(*e.getSubExpr(), nullptr);
}

void BodyWalker::conditional(const clang::ConditionalOperator& e, const Use& use) {
    expression(e.getCond());
    if (const auto known = constant_condition(e.getCond(), state_.ast))
        return expression(*known ? e.getTrueExpr() : e.getFalseExpr(), use);
    either([&] { return expression(e.getTrueExpr(), passed_on(use)), true; },
           [&] { return expression(e.getFalseExpr(), passed_on(use)), true; });
}

void BodyWalker::arguments(const clang::CallExpr& e) {
    const clang::FunctionDecl* callee = e.getDirectCallee();
    Use use{.purpose = Purpose::argument};
    if (callee && e.getNumArgs() > 0) use.function = state_.callees.of(*callee).name;
    const bool stores = callee && is_store_intrinsic(*callee, e);
    for (unsigned i = 0; i < e.getNumArgs(); ++i) {
        const bool stored = stores && i == 1;
        expression(e.getArg(i), stored ? Use{.purpose = Purpose::store, .target = e.getArg(0)} : use);
    }
    if (!callee) return;
    // Arguments passed by mutable reference may be changed by the callee.
    for (unsigned i = 0; i < e.getNumArgs() && i < callee->getNumParams(); ++i) {
        const clang::QualType type = callee->getParamDecl(i)->getType();
        if (type->isLValueReferenceType() && !type->getPointeeType().isConstQualified())
            assigned(*e.getArg(i), nullptr);
    }
}

void BodyWalker::call(const clang::CallExpr& e, const Use& use) {
    if (!e.getDirectCallee()) expression(e.getCallee());
    arguments(e);
    if (!add_intrinsic(e, use, state_)) add_call(e, state_);
}

void BodyWalker::member_call(const clang::CXXMemberCallExpr& e, const Use& use) {
    const bool converts = llvm::isa_and_nonnull<clang::CXXConversionDecl>(e.getDirectCallee());
    if (const clang::Expr* object = e.getImplicitObjectArgument())
        expression(object, converts ? passed_on(use) : Use{});
    arguments(e);
    if (converts) add_conversion(e, use, state_);
    add_call(e, state_);
}

void BodyWalker::operator_call(const clang::CXXOperatorCallExpr& e) {
    const clang::OverloadedOperatorKind op = e.getOperator();
    if (op == clang::OO_Equal && e.getNumArgs() == 2) {
        expression(e.getArg(1), {.purpose = Purpose::store, .target = e.getArg(0)});
        expression(e.getArg(0));
        add_assignment(e, state_);
        add_call(e, state_);
        return assigned(*e.getArg(0), e.getArg(1));
    }
    if (e.isAssignmentOp() && e.getNumArgs() == 2) {
        const bool sums = op == clang::OO_PlusEqual || op == clang::OO_MinusEqual;
        expression(e.getArg(1),
                   {.purpose = sums ? Purpose::accumulate : Purpose::operand, .target = e.getArg(0)});
        expression(e.getArg(0));
        add_call(e, state_);
        return assigned(*e.getArg(0), nullptr);
    }
    const bool arithmetic = op != clang::OO_Call && op != clang::OO_Subscript;
    Use use{.purpose = arithmetic ? Purpose::operand : Purpose::argument};
    if (!arithmetic && e.getDirectCallee()) use.function = state_.callees.of(*e.getDirectCallee()).name;
    for (unsigned i = 0; i < e.getNumArgs(); ++i)
        expression(e.getArg(i), i == 0 && !arithmetic ? Use{} : use);
    add_call(e, state_);
    if (op == clang::OO_PlusPlus || op == clang::OO_MinusMinus) assigned(*e.getArg(0), nullptr);
}

}  // namespace mp::lint::walk
