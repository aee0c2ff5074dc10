#include "analyzer/clang/body_walker.hpp"

#include <utility>

#include "analyzer/clang/body.hpp"
#include "analyzer/clang/calls.hpp"
#include "analyzer/clang/operands.hpp"
#include "analyzer/clang/type_uses.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/StmtCXX.h"

namespace mp::lint::walk {

void BodyWalker::run() {
    if (const auto* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(&state_.decl))
        for (const auto* init : constructor->inits())
            expression(init->getInit(), {.purpose = Purpose::init, .variable = init->getAnyMember()});
    statement(state_.decl.getBody());
}

bool BodyWalker::statement(const clang::Stmt* s) {
    if (!s) return true;
    if (const auto* e = llvm::dyn_cast<clang::Expr>(s)) {
        expression(e);
        return !llvm::isa<clang::CXXThrowExpr>(e->IgnoreImplicit());
    }
    ++coverage_.statements;
    switch (s->getStmtClass()) {
        case clang::Stmt::CompoundStmtClass:
            return compound(*llvm::cast<clang::CompoundStmt>(s));
        case clang::Stmt::DeclStmtClass:
            return declaration(*llvm::cast<clang::DeclStmt>(s)), true;
        case clang::Stmt::IfStmtClass:
            return branch(*llvm::cast<clang::IfStmt>(s));
        case clang::Stmt::ForStmtClass:
        case clang::Stmt::WhileStmtClass:
        case clang::Stmt::DoStmtClass:
        case clang::Stmt::CXXForRangeStmtClass:
            return loop(s), true;
        case clang::Stmt::SwitchStmtClass:
            return selection(*llvm::cast<clang::SwitchStmt>(s)), true;
        case clang::Stmt::CaseStmtClass:
        case clang::Stmt::DefaultStmtClass:
            state_.definitions.forget(switch_);  // reached from several places
            return statement(llvm::cast<clang::SwitchCase>(s)->getSubStmt());
        case clang::Stmt::LabelStmtClass:
            state_.definitions.forget(0);
            return statement(llvm::cast<clang::LabelStmt>(s)->getSubStmt());
        case clang::Stmt::ReturnStmtClass:
            return returned(llvm::cast<clang::ReturnStmt>(s)->getRetValue()), false;
        case clang::Stmt::BreakStmtClass:
        case clang::Stmt::ContinueStmtClass:
        case clang::Stmt::GotoStmtClass:
            return false;
        case clang::Stmt::CXXTryStmtClass:
            return attempt(*llvm::cast<clang::CXXTryStmt>(s)), true;
        case clang::Stmt::AttributedStmtClass:
            return statement(llvm::cast<clang::AttributedStmt>(s)->getSubStmt());
        case clang::Stmt::GCCAsmStmtClass:
            expressions(*s, {});
            return add_assembly(*llvm::cast<clang::GCCAsmStmt>(s), state_), true;
        default:
            for (const clang::Stmt* child : s->children()) statement(child);
            return true;
    }
}

bool BodyWalker::compound(const clang::CompoundStmt& s) {
    bool alive = true;
    for (const clang::Stmt* child : s.body()) {
        if (llvm::isa<clang::SwitchCase, clang::LabelStmt>(child)) alive = true;
        if (alive) alive = statement(child);
    }
    return alive;
}

bool BodyWalker::branch(const clang::IfStmt& s) {
    statement(s.getInit());
    if (s.isConsteval()) return statement(s.isNegatedConsteval() ? s.getThen() : s.getElse());
    statement(s.getConditionVariableDeclStmt());
    expression(s.getCond());
    if (const auto known = constant_condition(s.getCond(), state_.ast))
        return statement(*known ? s.getThen() : s.getElse());
    return either([&] { return statement(s.getThen()); }, [&] { return statement(s.getElse()); });
}

void BodyWalker::loop(const clang::Stmt* s) {
    const auto mark = state_.definitions.mark();
    const auto* range = llvm::dyn_cast<clang::CXXForRangeStmt>(s);
    const auto* counted = llvm::dyn_cast<clang::ForStmt>(s);
    if (counted) statement(counted->getInit());
    if (range) {
        statement(range->getInit());
        statement(range->getRangeStmt());
    }
    state_.definitions.forget_written(state_.mutations);
    ++state_.loop_depth;
    if (counted) {
        statement(counted->getConditionVariableDeclStmt());
        if (counted->getCond()) expression(counted->getCond());
        statement(counted->getBody());
        if (counted->getInc()) expression(counted->getInc());
    } else if (range) {
        statement(range->getLoopVarStmt());
        statement(range->getBody());
    } else if (const auto* tested = llvm::dyn_cast<clang::WhileStmt>(s)) {
        statement(tested->getConditionVariableDeclStmt());
        expression(tested->getCond());
        if (constant_condition(tested->getCond(), state_.ast) != false) statement(tested->getBody());
    } else {
        const auto* until = llvm::cast<clang::DoStmt>(s);
        // `do { ... } while (0)`: a block in a macro, not a loop.
        const bool once = constant_condition(until->getCond(), state_.ast) == false;
        if (once) --state_.loop_depth;
        statement(until->getBody());
        expression(until->getCond());
        if (once) ++state_.loop_depth;
    }
    --state_.loop_depth;
    state_.definitions.forget(mark);
}

void BodyWalker::selection(const clang::SwitchStmt& s) {
    statement(s.getInit());
    statement(s.getConditionVariableDeclStmt());
    expression(s.getCond());
    const auto mark = state_.definitions.mark();
    const auto outer = std::exchange(switch_, mark);
    clang::Expr::EvalResult value;
    if (can_evaluate(s.getCond()) && s.getCond()->EvaluateAsInt(value, state_.ast))
        selected_case(s, value.Val.getInt());
    else
        statement(s.getBody());
    state_.definitions.forget(mark);
    switch_ = outer;
}

// In an instantiation, `switch (MODE)` has one case that runs: from its label to the break.
void BodyWalker::selected_case(const clang::SwitchStmt& s, const llvm::APSInt& value) {
    const auto* body = llvm::dyn_cast<clang::CompoundStmt>(s.getBody());
    if (!body) return void(statement(s.getBody()));
    const clang::SwitchCase* chosen = nullptr;
    for (const auto* c = s.getSwitchCaseList(); c; c = c->getNextSwitchCase()) {
        const auto* labelled = llvm::dyn_cast<clang::CaseStmt>(c);
        if (!labelled) {
            if (!chosen) chosen = c;
            continue;
        }
        clang::Expr::EvalResult label;
        if (!can_evaluate(labelled->getLHS()) || labelled->getRHS() ||
            !labelled->getLHS()->EvaluateAsInt(label, state_.ast))
            return void(statement(s.getBody()));
        if (llvm::APSInt::isSameValue(label.Val.getInt(), value)) {
            chosen = c;
            break;
        }
    }
    bool live = false;
    for (const clang::Stmt* child : body->body()) {
        // Labels nest: in `case 1: case 2: x` the second is the statement of the first.
        for (const clang::Stmt* c = child; !live && llvm::isa<clang::SwitchCase>(c);
             c = llvm::cast<clang::SwitchCase>(c)->getSubStmt())
            live = c == chosen;
        if (live && !statement(child)) return;
    }
}

void BodyWalker::attempt(const clang::CXXTryStmt& s) {
    const auto mark = state_.definitions.mark();
    statement(s.getTryBlock());
    for (unsigned i = 0; i < s.getNumHandlers(); ++i) {
        state_.definitions.forget(mark);
        statement(s.getHandler(i)->getHandlerBlock());
    }
    state_.definitions.forget(mark);
}

void BodyWalker::declaration(const clang::DeclStmt& s) {
    for (const clang::Decl* d : s.decls()) {
        if (const auto* v = llvm::dyn_cast<clang::VarDecl>(d))
            variable(*v);
        else if (const auto* alias = llvm::dyn_cast<clang::TypedefNameDecl>(d))
            add_type_use(*alias, state_.out);
        else if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(d))
            classes_.push_back(record);
    }
}

void BodyWalker::variable(const clang::VarDecl& v) {
    add_type_use(v, state_.out);
    if (!v.hasInit()) return;
    expression(v.getInit(), {.purpose = Purpose::init, .variable = &v});
    if (v.hasLocalStorage()) state_.definitions.define(v, resolved(start_value(v), state_));
}

void BodyWalker::returned(const clang::Expr* value) {
    if (!value) return;
    expression(value, {.purpose = Purpose::result});
    state_.out.returned.push_back(make_operand(*value, state_));
}

void BodyWalker::assigned(const clang::Expr& target, const clang::Expr* value) {
    const clang::VarDecl* v = variable_of(&target);
    if (v && v->hasLocalStorage()) state_.definitions.define(*v, value ? resolved(value, state_) : nullptr);
}

}  // namespace mp::lint::walk
