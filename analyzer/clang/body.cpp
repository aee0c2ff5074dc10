#include "analyzer/clang/body.hpp"

#include <algorithm>

#include "analyzer/clang/types.hpp"
#include "clang/AST/StmtCXX.h"

namespace mp::lint {
namespace {

using namespace clang;

bool is_loop(const Stmt* s) { return isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(s); }

bool is_branch(const Stmt* s) {
    if (const auto* op = dyn_cast<BinaryOperator>(s)) return op->isLogicalOp();
    return isa<IfStmt, SwitchStmt, AbstractConditionalOperator>(s);
}

// Whether this part of a loop runs in every iteration.
bool repeats(const Stmt* loop, const Stmt* part) {
    if (const auto* f = dyn_cast<ForStmt>(loop)) return part != f->getInit();
    if (const auto* r = dyn_cast<CXXForRangeStmt>(loop))
        return part == r->getBody() || part == r->getLoopVarStmt() || part == r->getInc() ||
               part == r->getCond();
    return true;
}

WriteKind kind_of(BinaryOperatorKind op) {
    switch (op) {
        case BO_Assign:
            return WriteKind::assign;
        case BO_AddAssign:
            return WriteKind::add;
        case BO_SubAssign:
            return WriteKind::subtract;
        case BO_MulAssign:
            return WriteKind::multiply;
        case BO_DivAssign:
            return WriteKind::divide;
        default:
            return WriteKind::other;
    }
}

std::optional<WriteKind> kind_of(OverloadedOperatorKind op) {
    switch (op) {
        case OO_Equal:
            return WriteKind::assign;
        case OO_PlusEqual:
            return WriteKind::add;
        case OO_MinusEqual:
            return WriteKind::subtract;
        case OO_StarEqual:
            return WriteKind::multiply;
        case OO_SlashEqual:
            return WriteKind::divide;
        case OO_PlusPlus:
        case OO_MinusMinus:
            return WriteKind::step;
        default:
            return std::nullopt;
    }
}

// The value that the initialiser contains; null for `half x;`, whose constructor sets none.
const Expr* given_value(const Expr* init) {
    if (!init) return nullptr;
    const auto* construct = dyn_cast<CXXConstructExpr>(init->IgnoreImplicit());
    return construct && construct->getNumArgs() == 0 ? nullptr : init;
}

bool is_mutable_access(QualType parameter) {
    const QualType t = parameter.getNonReferenceType();
    if (parameter->isReferenceType()) return !t.isConstQualified() && parameter->isLValueReferenceType();
    return parameter->isPointerType() && !parameter->getPointeeType().isConstQualified();
}

}  // namespace

bool can_evaluate(const Expr* e) {
    return e && !e->isValueDependent() && !e->isTypeDependent() && !e->containsErrors();
}

std::optional<bool> constant_condition(const Expr* e, const ASTContext& context) {
    bool value = false;
    if (can_evaluate(e) && e->EvaluateAsBooleanCondition(value, context)) return value;
    return std::nullopt;
}

const ValueDecl* named_in(const Expr* lvalue, bool& whole) {
    whole = true;
    for (int depth = 0; lvalue && depth < 64; ++depth) {
        lvalue = lvalue->IgnoreParenCasts();
        if (const auto* ref = dyn_cast<DeclRefExpr>(lvalue)) return ref->getDecl();
        if (const auto* member = dyn_cast<MemberExpr>(lvalue)) {
            const Expr* base = member->getBase()->IgnoreParenCasts();
            if (isa<CXXThisExpr>(base)) return member->getMemberDecl();
            lvalue = base;
            whole = false;
            continue;
        }
        whole = false;
        if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(lvalue))
            lvalue = subscript->getBase();
        else if (const auto* unary = dyn_cast<UnaryOperator>(lvalue))
            lvalue = unary->getSubExpr();
        else if (const auto* call = dyn_cast<CXXOperatorCallExpr>(lvalue))
            lvalue = call->getNumArgs() ? call->getArg(0) : nullptr;
        else if (const auto* method = dyn_cast<CXXMemberCallExpr>(lvalue))
            lvalue = method->getImplicitObjectArgument();
        else if (const auto* sum = dyn_cast<BinaryOperator>(lvalue))
            lvalue = sum->getLHS()->getType()->isPointerType() ? sum->getLHS() : sum->getRHS();
        else if (const auto* inner = dyn_cast<MaterializeTemporaryExpr>(lvalue))
            lvalue = inner->getSubExpr();
        else
            return nullptr;
    }
    return nullptr;
}

Body::Body(const FunctionDecl& function, ASTContext& context) : function_(function), context_(context) {
    if (const auto* constructor = dyn_cast<CXXConstructorDecl>(&function)) {
        for (const CXXCtorInitializer* init : constructor->inits())
            if (init->getInit()) walk(init->getInit());
    }
    if (const Stmt* body = function.getBody()) walk(body);
}

// Iterative, because generated code can nest expressions deeper than the stack allows.
void Body::walk(const Stmt* root) {
    std::vector<std::pair<const Stmt*, bool>> pending{{root, false}};  // second: all children are visited
    nodes_[root];
    std::vector<const Stmt*> children;
    while (!pending.empty()) {
        const auto [s, leaving] = pending.back();
        pending.pop_back();
        if (leaving) {
            nodes_[s].end = clock_;
            continue;
        }
        nodes_[s].begin = clock_++;
        enter(s);
        pending.push_back({s, true});
        children.clear();
        children_of(s, children);
        for (auto child = children.rbegin(); child != children.rend(); ++child) {
            if (nodes_.count(*child))
                continue;  // shared by the syntactic and the semantic form of an
                           // initialiser list
            nodes_[*child].parent = s;
            pending.push_back({*child, false});
        }
    }
}

void Body::children_of(const Stmt* s, std::vector<const Stmt*>& out) const {
    const auto add = [&](const Stmt* child) {
        if (child) out.push_back(child);
    };
    if (const auto* branch = dyn_cast<IfStmt>(s)) {
        const auto taken = constant_condition(branch->getCond(), context_);
        add(branch->getInit());
        add(branch->getConditionVariableDeclStmt());
        add(branch->getCond());
        if (taken != false) add(branch->getThen());
        if (taken != true) add(branch->getElse());
        return;
    }
    if (const auto* choice = dyn_cast<ConditionalOperator>(s)) {
        const auto taken = constant_condition(choice->getCond(), context_);
        add(choice->getCond());
        if (taken != false) add(choice->getTrueExpr());
        if (taken != true) add(choice->getFalseExpr());
        return;
    }
    if (isa<UnaryExprOrTypeTraitExpr, CXXNoexceptExpr, OpaqueValueExpr>(s)) return;
    if (const auto* property = dyn_cast<PseudoObjectExpr>(s)) return add(property->getSyntacticForm());
    if (const auto* lambda = dyn_cast<LambdaExpr>(s)) {  // its body is a separate function
        for (const Expr* init : lambda->capture_inits()) add(init);
        return;
    }
    if (const auto* list = dyn_cast<InitListExpr>(s); list && list->getSemanticForm())
        s = list->getSemanticForm();
    for (const Stmt* child : s->children()) add(child);
}

void Body::enter(const Stmt* s) {
    if (is_loop(s)) loops_.push_back(s);
    if (const auto* ref = dyn_cast<DeclRefExpr>(s)) uses_[ref->getDecl()].push_back(ref);
    if (const auto* declaration = dyn_cast<DeclStmt>(s)) note_declarations(*declaration);
    if (const auto* binary = dyn_cast<BinaryOperator>(s)) note_binary(*binary);
    if (const auto* unary = dyn_cast<UnaryOperator>(s); unary && unary->isIncrementDecrementOp())
        add_write(*s, unary->getSubExpr(), nullptr, WriteKind::step);
    if (const auto* lambda = dyn_cast<LambdaExpr>(s)) note_captures(*lambda);
    if (const auto* leave = dyn_cast<ReturnStmt>(s); leave && leave->getRetValue())
        returned_.push_back(leave->getRetValue());
    if (const auto* call = dyn_cast<CallExpr>(s)) {
        calls_.push_back(call);
        if (const auto* op = dyn_cast<CXXOperatorCallExpr>(call))
            note_operator(*op);
        else
            note_arguments(*call);
    }
}

void Body::note_declarations(const DeclStmt& declaration) {
    for (const Decl* d : declaration.decls()) {
        const auto* variable = dyn_cast<VarDecl>(d);
        if (!variable) continue;
        declared_[variable] = &declaration;
        const Expr* value = given_value(start_value(*variable));
        if (!value) continue;
        by_variable_[variable].push_back(static_cast<std::uint32_t>(writes_.size()));
        writes_.push_back({&declaration, nullptr, value, variable, WriteKind::init, true});
        bool whole = false;
        if (!is_mutable_access(variable->getType())) continue;
        // A mutable alias: `half& r = x;`, `half* h = (half*)&packed;`
        if (const ValueDecl* aliased = named_in(value, whole); aliased && isa<VarDecl>(aliased))
            if (!aliased->getType()->isPointerType())
                add_write(declaration, value, nullptr, WriteKind::escape);
    }
}

void Body::note_binary(const BinaryOperator& op) {
    if (op.isAssignmentOp()) add_write(op, op.getLHS(), op.getRHS(), kind_of(op.getOpcode()));
}

void Body::note_operator(const CXXOperatorCallExpr& call) {
    const auto kind = kind_of(call.getOperator());
    if (kind && call.getNumArgs() >= 1) {
        const Expr* value = *kind != WriteKind::step && call.getNumArgs() == 2 ? call.getArg(1) : nullptr;
        add_write(call, call.getArg(0), value, *kind);
    } else if (call.getOperator() == OO_Call) {
        note_arguments(call);
    }
}

void Body::note_arguments(const CallExpr& call) {
    const FunctionDecl* callee = call.getDirectCallee();
    if (!callee) return;
    const bool shifted = isa<CXXOperatorCallExpr>(call) && isa<CXXMethodDecl>(callee);
    for (unsigned i = 0; i < callee->getNumParams(); ++i) {
        const unsigned argument = i + (shifted ? 1 : 0);
        if (argument >= call.getNumArgs()) break;
        if (is_mutable_access(callee->getParamDecl(i)->getType()))
            add_write(call, call.getArg(argument), nullptr, WriteKind::escape);
    }
    if (const auto* method = dyn_cast<CXXMemberCallExpr>(&call))
        if (const auto* decl = method->getMethodDecl(); decl && !decl->isConst() && !decl->isStatic())
            add_write(call, method->getImplicitObjectArgument(), nullptr, WriteKind::escape);
}

void Body::note_captures(const LambdaExpr& lambda) {
    for (const LambdaCapture& capture : lambda.captures()) {
        if (!capture.capturesVariable() || capture.getCaptureKind() != LCK_ByRef) continue;
        by_variable_[capture.getCapturedVar()].push_back(static_cast<std::uint32_t>(writes_.size()));
        writes_.push_back({&lambda, nullptr, nullptr, capture.getCapturedVar(), WriteKind::escape, true});
    }
}

void Body::add_write(const Stmt& site, const Expr* target, const Expr* value, WriteKind kind) {
    bool whole = false;
    const ValueDecl* base = named_in(target, whole);
    // A pointer argument passes on the object it points to, not the pointer variable.
    if (kind == WriteKind::escape && base && base->getType()->isPointerType() && !target->isLValue())
        whole = false;
    if (base) by_variable_[base].push_back(static_cast<std::uint32_t>(writes_.size()));
    writes_.push_back({&site, target, value, base, kind, whole});
}

const Stmt* Body::parent(const Stmt* s) const {
    const auto found = nodes_.find(s);
    return found == nodes_.end() ? nullptr : found->second.parent;
}

std::uint32_t Body::order(const Stmt* s) const {
    const auto found = nodes_.find(s);
    return found == nodes_.end() ? 0 : found->second.begin;
}

bool Body::contains(const Stmt* outer, const Stmt* inner) const {
    const auto a = nodes_.find(outer), b = nodes_.find(inner);
    if (a == nodes_.end() || b == nodes_.end()) return false;
    return a->second.begin <= b->second.begin && b->second.end <= a->second.end;
}

std::vector<const Stmt*> Body::loops_around(const Stmt* s) const {
    std::vector<const Stmt*> loops;
    for (const Stmt* child = s; const Stmt* up = parent(child); child = up) {
        if (!is_loop(up) || !repeats(up, child)) continue;
        const auto* once = dyn_cast<DoStmt>(up);
        if (once && constant_condition(once->getCond(), context_) == false) continue;
        loops.push_back(up);
    }
    return loops;
}

bool Body::ends_early(const Stmt* loop) const {
    std::vector<std::pair<const Stmt*, bool>>
        open;  // with: break and continue are those of an inner statement
    for (const Stmt* child : loop->children()) open.emplace_back(child, false);
    while (!open.empty()) {
        const auto [s, inner] = open.back();
        open.pop_back();
        if (!s || !has(s) || isa<LambdaExpr>(s)) continue;
        if (isa<ReturnStmt, GotoStmt>(s) || (!inner && isa<BreakStmt, ContinueStmt>(s))) return true;
        for (const Stmt* child : s->children())
            open.emplace_back(child, inner || is_loop(s) || isa<SwitchStmt>(s));
    }
    return false;
}

bool Body::always_runs(const Stmt* inner, const Stmt* outer) const {
    for (const Stmt* s = inner; s && s != outer; s = parent(s)) {
        const Stmt* up = parent(s);
        if (!up) return outer == nullptr;
        const auto* branch = dyn_cast<IfStmt>(up);
        if (branch && (s == branch->getCond() || constant_condition(branch->getCond(), context_))) continue;
        if (up != outer && is_branch(up)) return false;
    }
    return true;
}

std::vector<const Write*> Body::writes_to(const ValueDecl* variable) const {
    std::vector<const Write*> found;
    const auto at = by_variable_.find(variable);
    if (at == by_variable_.end()) return found;
    for (const std::uint32_t i : at->second) found.push_back(&writes_[i]);
    return found;
}

const Stmt* Body::declared_at(const ValueDecl* variable) const { return declared_.lookup(variable); }

const std::vector<const DeclRefExpr*>& Body::uses_of(const ValueDecl* variable) const {
    static const std::vector<const DeclRefExpr*> none;
    const auto found = uses_.find(variable);
    return found == uses_.end() ? none : found->second;
}

const Expr* Body::definition(const VarDecl* variable) const {
    if (!variable || isa<ParmVarDecl>(variable) || !variable->isLocalVarDecl() || variable->isStaticLocal())
        return nullptr;
    if (variable->getType()->isReferenceType()) return start_value(*variable);
    const Write* only = nullptr;
    for (const Write* w : writes_to(variable)) {
        // A write to an element does not change the pointer.
        if (!w->whole && variable->getType()->isPointerType()) continue;
        if (only) return nullptr;
        only = w;
    }
    if (!only || !only->whole || !only->value) return nullptr;
    if (only->kind == WriteKind::init) return only->value;
    const Stmt* declaration = declared_at(variable);
    // Assigned once, in the scope and loop of its declaration: not from itself in an inner loop.
    const bool straight = only->kind == WriteKind::assign && declaration &&
                          always_runs(only->site, parent(declaration)) &&
                          loops_around(only->site) == loops_around(declaration);
    return straight ? only->value : nullptr;
}

const Expr* Body::origin(const VarDecl* variable) const {
    if (!variable || isa<ParmVarDecl>(variable) || !variable->isLocalVarDecl() || variable->isStaticLocal() ||
        !variable->getType()->isPointerType())
        return nullptr;
    const Expr* first = nullptr;
    for (const Write* w : writes_to(variable)) {
        if (!w->whole) continue;
        if (w->kind == WriteKind::init)
            first = w->value;
        else if (w->kind != WriteKind::add && w->kind != WriteKind::subtract && w->kind != WriteKind::step)
            return nullptr;
    }
    return first;
}

}  // namespace mp::lint
