#include "analyzer/clang/walk_state.hpp"

#include <utility>

#include "analyzer/clang/types.hpp"
#include "clang/AST/StmtCXX.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

namespace mp::lint::walk {
namespace {

constexpr int kSteps = 32;  // limit on steps through pointer arithmetic and local pointers

const clang::ValueDecl* named_by(const clang::Expr& target) {
    const clang::Expr* e = target.IgnoreParenImpCasts();
    if (const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(e)) return ref->getDecl();
    if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(e)) return member->getMemberDecl();
    return nullptr;
}

const clang::Expr* address_of(const clang::Expr* e) {
    const auto* op = llvm::dyn_cast<clang::UnaryOperator>(e->IgnoreParenCasts());
    return op && op->getOpcode() == clang::UO_AddrOf ? op->getSubExpr() : nullptr;
}

bool is_move(const clang::CallExpr& call) {
    const clang::FunctionDecl* callee = call.getDirectCallee();
    if (!callee || !callee->getIdentifier() || call.getNumArgs() != 1) return false;
    const llvm::StringRef name = callee->getName();
    return callee->isInStdNamespace() && (name == "move" || name == "forward" || name == "as_const");
}

bool is_mutable_reference(clang::QualType type) {
    return type->isLValueReferenceType() && !type->getPointeeType().isConstQualified();
}

// The expression below one wrapper that keeps the value; null when there is no wrapper.
const clang::Expr* unwrapped(const clang::Expr* e) {
    if (const auto* t = llvm::dyn_cast<clang::ImplicitCastExpr>(e)) return t->getSubExpr();
    if (const auto* t = llvm::dyn_cast<clang::MaterializeTemporaryExpr>(e)) return t->getSubExpr();
    if (const auto* t = llvm::dyn_cast<clang::CXXBindTemporaryExpr>(e)) return t->getSubExpr();
    if (const auto* t = llvm::dyn_cast<clang::FullExpr>(e)) return t->getSubExpr();
    if (const auto* t = llvm::dyn_cast<clang::SubstNonTypeTemplateParmExpr>(e)) return t->getReplacement();
    if (const auto* t = llvm::dyn_cast<clang::CXXConstructExpr>(e))
        if (t->getNumArgs() >= 1 && t->getConstructor()->isCopyOrMoveConstructor()) return t->getArg(0);
    if (const auto* t = llvm::dyn_cast<clang::CallExpr>(e))
        if (is_move(*t)) return t->getArg(0);
    if (const auto* t = llvm::dyn_cast<clang::InitListExpr>(e))
        if (t->getNumInits() == 1 && (t->getType()->isScalarType() || t->isTransparent()))
            return t->getInit(0);
    return nullptr;
}

// The next pointer on the path to the storage; null at the end of the path.
const clang::Expr* towards_storage(const clang::Expr* e, bool& indirect) {
    if (const auto* index = llvm::dyn_cast<clang::ArraySubscriptExpr>(e)) {
        indirect = true;
        return index->getBase();
    }
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(e)) {
        indirect |= unary->getOpcode() == clang::UO_Deref;
        return unary->getSubExpr();
    }
    if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(e))
        return op->getLHS()->getType()->isPointerType() ? op->getLHS() : op->getRHS();
    const auto* member = llvm::dyn_cast<clang::MemberExpr>(e);
    if (!member) return nullptr;
    indirect |= member->isArrow();
    return member->getBase();
}

}  // namespace

Mutations::Mutations(const clang::FunctionDecl& function) {
    if (const auto* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(&function))
        for (const auto* init : constructor->inits()) scan(init->getInit());
    scan(function.getBody());
}

void Mutations::write(const clang::Expr& target) {
    const clang::ValueDecl* decl = named_by(target);
    if (!decl) return;
    written_.insert(decl);
    if (in_lambda_) escaped_.insert(decl);
}

void Mutations::escape(const clang::Expr& target) {
    if (const clang::ValueDecl* decl = named_by(target)) {
        written_.insert(decl);
        escaped_.insert(decl);
    }
}

void Mutations::scan_call(const clang::CallExpr& call) {
    const clang::FunctionDecl* callee = call.getDirectCallee();
    const auto* op = llvm::dyn_cast<clang::CXXOperatorCallExpr>(&call);
    if (op && op->getNumArgs() > 0) {
        const auto kind = op->getOperator();
        if (op->isAssignmentOp() || kind == clang::OO_PlusPlus || kind == clang::OO_MinusMinus)
            return write(*op->getArg(0));
    }
    if (!callee) return;
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(callee);
    const unsigned skip = op && method && method->isImplicitObjectMemberFunction();
    for (unsigned i = skip; i < call.getNumArgs() && i - skip < callee->getNumParams(); ++i)
        if (is_mutable_reference(callee->getParamDecl(i - skip)->getType())) escape(*call.getArg(i));
}

void Mutations::scan_declarations(const clang::DeclStmt& declares) {
    for (const clang::Decl* d : declares.decls()) {
        const auto* variable = llvm::dyn_cast<clang::VarDecl>(d);
        if (!variable) continue;
        ++names_[variable->getDeclName()];
        if (is_mutable_reference(variable->getType()) && variable->hasInit()) escape(*variable->getInit());
    }
}

void Mutations::scan(const clang::Stmt* statement) {
    if (!statement) return;
    if (const auto* lambda = llvm::dyn_cast<clang::LambdaExpr>(statement)) {
        for (const clang::Expr* init : lambda->capture_inits()) scan(init);
        const bool outer = std::exchange(in_lambda_, true);
        scan(lambda->getBody());
        in_lambda_ = outer;
        return;
    }
    if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(statement)) {
        if (op->isAssignmentOp()) write(*op->getLHS());
    } else if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(statement)) {
        if (unary->isIncrementDecrementOp()) write(*unary->getSubExpr());
        if (unary->getOpcode() == clang::UO_AddrOf) escape(*unary->getSubExpr());
    } else if (const auto* assembly = llvm::dyn_cast<clang::GCCAsmStmt>(statement)) {
        for (unsigned i = 0; i < assembly->getNumOutputs(); ++i) escape(*assembly->getOutputExpr(i));
    } else if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(statement)) {
        // `&x` converted to a pointer to const is only read.
        const clang::QualType pointee = cast->getType()->getPointeeType();
        const clang::Expr* target = address_of(cast);
        if (target && !pointee.isNull() && pointee.isConstQualified()) return scan(target);
    } else if (const auto* call = llvm::dyn_cast<clang::CallExpr>(statement)) {
        scan_call(*call);
    } else if (const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(statement)) {
        if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(ref->getDecl())) ++uses_[variable];
    } else if (const auto* declares = llvm::dyn_cast<clang::DeclStmt>(statement)) {
        scan_declarations(*declares);
    }
    for (const clang::Stmt* child : statement->children()) scan(child);
}

void Definitions::define(const clang::VarDecl& variable, const clang::Expr* value) {
    const clang::Expr*& slot = values_[&variable];
    journal_.push_back({&variable, slot});
    slot = value;
}

std::vector<const clang::VarDecl*> Definitions::undo(Mark mark) {
    std::vector<const clang::VarDecl*> written;
    while (journal_.size() > mark) {
        const Entry entry = journal_.back();
        journal_.pop_back();
        values_[entry.variable] = entry.before;
        written.push_back(entry.variable);
    }
    return written;
}

void Definitions::forget(Mark mark) {
    // Entries stay in the journal, because an enclosing branch must be able to undo them.
    const std::size_t end = journal_.size();
    for (std::size_t i = mark; i < end; ++i)
        if (values_.lookup(journal_[i].variable)) define(*journal_[i].variable, nullptr);
}

void Definitions::forget_written(const Mutations& mutations) {
    for (auto& [variable, value] : values_) {
        if (!value || mutations.is_stable(*variable)) continue;
        journal_.push_back({variable, value});
        value = nullptr;
    }
}

const clang::Expr* same_value(const clang::Expr* e) {
    while (e) {
        e = e->IgnoreParens();
        const clang::Expr* inner = unwrapped(e);
        if (!inner) return e;
        e = inner;
    }
    return e;
}

const clang::VarDecl* variable_of(const clang::Expr* e) {
    const auto* ref = llvm::dyn_cast_or_null<clang::DeclRefExpr>(e ? e->IgnoreParenImpCasts() : nullptr);
    return ref ? llvm::dyn_cast<clang::VarDecl>(ref->getDecl()) : nullptr;
}

const clang::Expr* resolved(const clang::Expr* e, const State& state) {
    e = same_value(e);
    const clang::VarDecl* variable = variable_of(e);
    if (!variable || state.mutations.escapes(*variable)) return e;
    // One step only: definitions are resolved when they are made, and the variables in them may change
    // later.
    const clang::Expr* value = state.definitions.value_of(*variable);
    return value ? value : e;
}

const clang::ParmVarDecl* stored_through(const clang::Expr* e) {
    bool indirect = e->getType()->isPointerType();  // passed to a store intrinsic
    for (int step = 0; e && step < kSteps; ++step) {
        e = e->IgnoreParenCasts();
        const clang::VarDecl* variable = variable_of(e);
        if (!variable) {
            e = towards_storage(e, indirect);
            continue;
        }
        const clang::QualType type = variable->getType();
        if (const auto* parameter = llvm::dyn_cast<clang::ParmVarDecl>(variable))
            return type->isReferenceType() || (indirect && type->isPointerType()) ? parameter : nullptr;
        // A local pointer that is initialised from a parameter.
        e = type->isPointerType() || type->isReferenceType() ? start_value(*variable) : nullptr;
    }
    return nullptr;
}

Symbol macro_at(clang::SourceLocation location, const clang::ASTContext& context) {
    const auto& sources = context.getSourceManager();
    llvm::StringRef name;
    while (location.isMacroID()) {
        if (sources.isMacroArgExpansion(location)) {
            location = sources.getImmediateSpellingLoc(location);
            continue;
        }
        name = clang::Lexer::getImmediateMacroName(location, sources, context.getLangOpts());
        location = sources.getImmediateExpansionRange(location).getBegin();
    }
    return name.empty() ? Symbol() : Symbol(std::string_view(name));
}

}  // namespace mp::lint::walk
