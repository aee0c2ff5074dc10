// Terms that name storage: the variable, the element, and whether the element changes with a loop.

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyzer/clang/terms.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/StmtCXX.h"

namespace mp::lint {
namespace {

using namespace clang;

constexpr unsigned kDeepest = 24;
constexpr std::size_t kMostSources = 4000;

const VarDecl* variable_in(Term t) {
    const auto* ref = t ? dyn_cast<DeclRefExpr>(t.expr) : nullptr;
    return ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
}

const UnaryOperator* unary(Term t, UnaryOperatorKind kind) {
    const auto* op = dyn_cast<UnaryOperator>(t.expr);
    return op && op->getOpcode() == kind ? op : nullptr;
}

bool is_null(const Expr* e) {
    e = e->IgnoreParenCasts();
    const auto* literal = dyn_cast<IntegerLiteral>(e);
    return isa<GNUNullExpr, CXXNullPtrLiteralExpr>(e) || (literal && literal->getValue() == 0);
}

}  // namespace

bool Terms::same(Term a, Term b) const { return same_at(a, b, 0); }

bool Terms::same_at(Term a, Term b, unsigned depth) const {
    if (!a || !b || depth > kDeepest) return false;
    a = strip(a), b = strip(b);
    if (a.expr == b.expr && a.frame == b.frame) return true;
    if (a.expr->getStmtClass() != b.expr->getStmtClass()) return false;
    const auto both = [&](const Expr* x, const Expr* y) {
        return same_at({x, a.frame}, {y, b.frame}, depth + 1);
    };
    if (const auto* x = dyn_cast<DeclRefExpr>(a.expr)) {
        const auto* y = cast<DeclRefExpr>(b.expr);
        const auto* local = dyn_cast<VarDecl>(x->getDecl());
        if (x->getDecl()->getCanonicalDecl() != y->getDecl()->getCanonicalDecl()) return false;
        return a.frame == b.frame || !local || !local->hasLocalStorage();
    }
    if (const auto* x = dyn_cast<MemberExpr>(a.expr)) {
        const auto* y = cast<MemberExpr>(b.expr);
        return x->getMemberDecl() == y->getMemberDecl() && both(x->getBase(), y->getBase());
    }
    if (const auto* x = dyn_cast<ArraySubscriptExpr>(a.expr)) {
        const auto* y = cast<ArraySubscriptExpr>(b.expr);
        return both(x->getBase(), y->getBase()) && both(x->getIdx(), y->getIdx());
    }
    if (const auto* x = dyn_cast<UnaryOperator>(a.expr)) {
        const auto* y = cast<UnaryOperator>(b.expr);
        return x->getOpcode() == y->getOpcode() && !x->isIncrementDecrementOp() &&
               both(x->getSubExpr(), y->getSubExpr());
    }
    if (const auto* x = dyn_cast<BinaryOperator>(a.expr)) {
        const auto* y = cast<BinaryOperator>(b.expr);
        return x->getOpcode() == y->getOpcode() && both(x->getLHS(), y->getLHS()) &&
               both(x->getRHS(), y->getRHS());
    }
    if (const auto* x = dyn_cast<CallExpr>(a.expr)) {
        const auto* y = cast<CallExpr>(b.expr);
        if (!x->getDirectCallee() || x->getDirectCallee() != y->getDirectCallee()) return false;
        if (x->getNumArgs() != y->getNumArgs()) return false;
        if (const auto* m = dyn_cast<CXXMemberCallExpr>(x))
            if (!both(m->getImplicitObjectArgument(),
                      cast<CXXMemberCallExpr>(y)->getImplicitObjectArgument()))
                return false;
        for (unsigned i = 0; i < x->getNumArgs(); ++i)
            if (!both(x->getArg(i), y->getArg(i))) return false;
        return true;
    }
    if (isa<CXXThisExpr>(a.expr)) return a.frame == b.frame;
    const auto x = number(a), y = number(b);
    return x && y && *x == *y;
}

std::optional<double> Terms::number(Term t) const {
    t = resolve(t);
    if (!t || !can_evaluate(t.expr)) return std::nullopt;
    if (t.expr->getType()->isIntegralOrEnumerationType()) {
        if (const auto value = body_of(t.frame).constant(t.expr)) return static_cast<double>(*value);
        return std::nullopt;
    }
    llvm::APFloat value(0.0);
    if (!t.expr->getType()->isRealFloatingType() || !t.expr->EvaluateAsFloat(value, context_))
        return std::nullopt;
    bool loses = false;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return value.convertToDouble();
}

DType Terms::dtype(Term t) const { return t ? element_type(t.expr->getType()).dtype : DType::unknown; }

Place Terms::place(Term lvalue) const {
    Place place;
    place_of(lvalue, place, 0);
    return place;
}

const VarDecl* Terms::array_of(Term element) const {
    const Term plain = element ? strip(element) : element;
    const auto* subscript = dyn_cast_or_null<ArraySubscriptExpr>(plain.expr);
    const Term base = subscript ? strip({subscript->getBase(), plain.frame}) : Term{};
    const auto* name = dyn_cast_or_null<DeclRefExpr>(base.expr);
    return name ? dyn_cast<VarDecl>(name->getDecl()) : nullptr;
}

Place Terms::pointee(Term pointer) const {
    Place place;
    place.element = true;
    pointer_of(pointer, place, 0);
    return place;
}

Term Terms::part_of(Term whole, const FieldDecl& field) const {
    whole = strip(whole);
    const unsigned index = field.getFieldIndex();
    if (const auto* list = dyn_cast_or_null<InitListExpr>(whole.expr))
        return index < list->getNumInits() ? Term{list->getInit(index), whole.frame} : Term{};
    const auto* call = dyn_cast_or_null<CallExpr>(whole.expr);
    const FunctionDecl* callee = call ? call->getDirectCallee() : nullptr;
    if (!callee || !is_vector_of(*callee) || index >= call->getNumArgs()) return {};
    return {call->getArg(index), whole.frame};
}

// The object whose method the frame is.
static Term object_of(const Frame* method) {
    if (!method) return {};
    if (const auto* call = dyn_cast<CXXMemberCallExpr>(method->call))
        return {call->getImplicitObjectArgument(), method->outer};
    const auto* op = dyn_cast<CXXOperatorCallExpr>(method->call);
    return op ? Term{op->getArg(0), method->outer} : Term{};
}

// Whether the value of a pointer is read from memory: one of a table of pointers.
static bool is_loaded(const Expr& pointer) {
    const auto* unary = dyn_cast<UnaryOperator>(&pointer);
    return isa<ArraySubscriptExpr>(pointer) || (unary && unary->getOpcode() == UO_Deref);
}

// A class's own a[i].
static const CXXOperatorCallExpr* subscript_in(Term t) {
    const auto* op = dyn_cast<CXXOperatorCallExpr>(t.expr->IgnoreImplicit()->IgnoreParenImpCasts());
    return op && op->getOperator() == OO_Subscript && op->getNumArgs() == 2 ? op : nullptr;
}

void Terms::place_of(Term t, Place& out, unsigned depth) const {
    if (!t || depth > kDeepest) return;
    const Term written = t;
    t = strip(t);
    // The body of the operator is looked into, and can hide the object: return View(p + i * stride);
    const CXXOperatorCallExpr* index = subscript_in(written);
    for (; index && index != t.expr; index = subscript_in({index->getArg(0), written.frame}))
        out.address.push_back({index->getArg(1), written.frame});
    if (const VarDecl* variable = variable_in(t)) {
        if (variable->getType()->isReferenceType()) {
            if (const Expr* bound = body_of(t.frame).definition(variable))
                return place_of({bound, t.frame}, out, depth + 1);
            out.through_pointer = true;
        }
        out.base = variable;
        out.frame = t.frame;
        // A lambda's captured variable belongs to an enclosing function.
        while (out.frame && variable->hasLocalStorage() && variable->getDeclContext() != out.frame->callee)
            out.frame = out.frame->outer;
        return;
    }
    if (const auto* member = dyn_cast<MemberExpr>(t.expr)) {
        const Term base = strip({member->getBase(), t.frame});
        if (isa<CXXThisExpr>(base.expr)) {
            if (const Term object = object_of(base.frame)) {
                out.element = true;
                return place_of(object, out, depth + 1);
            }
            out.base = member->getMemberDecl();
            out.frame = base.frame;
            out.of_this = true;
            return;
        }
        out.element = true;
        const auto* field = dyn_cast<FieldDecl>(member->getMemberDecl());
        const bool holds = field && (field->getType()->isPointerType() || field->getType()->isArrayType());
        if (!out.part && holds) out.part = field;
        out.field = isa<DeclRefExpr>(base.expr) ? field : nullptr;
        return member->isArrow() ? pointer_of(base, out, depth + 1) : place_of(base, out, depth + 1);
    }
    out.element = true;
    if (const auto* subscript = dyn_cast<ArraySubscriptExpr>(t.expr)) {
        out.address.push_back({subscript->getIdx(), t.frame});
        return pointer_of({subscript->getBase(), t.frame}, out, depth + 1);
    }
    if (const auto* deref = unary(t, UO_Deref))
        return pointer_of({deref->getSubExpr(), t.frame}, out, depth + 1);
    if (const auto* op = dyn_cast<CXXOperatorCallExpr>(t.expr)) {
        for (unsigned i = 1; i < op->getNumArgs(); ++i) out.address.push_back({op->getArg(i), t.frame});
        if (op->getNumArgs() > 0 && (op->getOperator() == OO_Subscript || op->getOperator() == OO_Star ||
                                     op->getOperator() == OO_Call))
            place_of({op->getArg(0), t.frame}, out, depth + 1);
        return;
    }
    if (const auto* method = dyn_cast<CXXMemberCallExpr>(t.expr)) {
        for (const Expr* argument : method->arguments()) out.address.push_back({argument, t.frame});
        place_of({method->getImplicitObjectArgument(), t.frame}, out, depth + 1);
    }
}

void Terms::pointer_of(Term t, Place& out, unsigned depth) const {
    if (!t || depth > kDeepest) return;
    t = strip(t);
    if (const auto* address = unary(t, UO_AddrOf))
        return place_of({address->getSubExpr(), t.frame}, out, depth + 1);
    if (const auto* sum = dyn_cast<BinaryOperator>(t.expr)) {
        const bool left =
            sum->getLHS()->getType()->isPointerType() || sum->getLHS()->getType()->isArrayType();
        out.address.push_back({left ? sum->getRHS() : sum->getLHS(), t.frame});
        return pointer_of({left ? sum->getLHS() : sum->getRHS(), t.frame}, out, depth + 1);
    }
    if (const auto* choice = dyn_cast<ConditionalOperator>(t.expr)) {
        const Expr* arm = is_null(choice->getFalseExpr()) ? choice->getTrueExpr() : choice->getFalseExpr();
        return pointer_of({arm, t.frame}, out, depth + 1);
    }
    const VarDecl* variable = variable_in(t);
    if (variable && variable->getType().getNonReferenceType()->isPointerType()) {
        const Body& body = body_of(t.frame);
        const Expr* value = body.definition(variable);
        const bool moves = !value;
        if (moves) value = body.origin(variable);
        if (value && !is_null(value)) {
            Place inner;
            if (moves) inner.address.push_back(t);
            const Term from = strip({value, t.frame});
            if (is_loaded(*from.expr)) inner.part = variable;
            pointer_of({value, t.frame}, inner, depth + 1);
            if (inner.base) {
                if (out.part) inner.part = out.part;
                inner.address.append(out.address.begin(), out.address.end());
                inner.element = true;
                out = std::move(inner);
                return;
            }
        }
        out.base = variable;
        out.frame = t.frame;
        out.through_pointer = true;
        out.address.push_back(t);
        return;
    }
    if (t.expr->getType()->isPointerType()) out.address.push_back(t);
    place_of(t, out, depth + 1);
    if (out.base && t.expr->getType()->isPointerType()) out.through_pointer = true;
}

bool Terms::varies(Term t, const Stmt* loop, const Frame* frame) const {
    return varies_at(t, loop, frame, 0);
}

// Whether the variable has different values in different iterations of the loop.
bool Terms::moves(const VarDecl& variable, const Stmt* loop, const Frame* frame, unsigned depth) const {
    const Body& body = body_of(frame);
    const Stmt* declared = body.declared_at(&variable);
    const Expr* definition = body.definition(&variable);
    if (definition && declared && body.contains(loop, declared))
        return varies_at({definition, frame}, loop, frame, depth + 1);
    const auto writes = body.writes_to(&variable);
    // The counter of an inner loop takes the same values in every iteration, unless it starts elsewhere.
    const Stmt* counted = body.loop_of_counter(&variable);
    if (counted && counted != loop && body.contains(loop, counted) && !writes.empty() &&
        writes.front()->value)
        return varies_at({writes.front()->value, frame}, loop, frame, depth + 1);
    return std::ranges::any_of(writes,
                               [&](const Write* w) { return w->whole && body.contains(loop, w->site); });
}

bool Terms::varies_at(Term t, const Stmt* loop, const Frame* frame, unsigned depth) const {
    if (!t || depth > kDeepest) return false;
    bool found = false;
    for_each_expr(t.expr, [&](const Expr& e) {
        const auto* ref = dyn_cast<DeclRefExpr>(&e);
        const auto* variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
        if (found || !variable) return;
        if (t.frame == frame) {
            found = moves(*variable, loop, frame, depth);
            return;
        }
        // A variable of a helper: its definition decides.
        const Term source = strip({&e, t.frame});
        const Expr* definition = body_of(t.frame).definition(variable);
        if (source.expr != &e)
            found = varies_at(source, loop, frame, depth + 1);
        else if (definition)
            found = varies_at({definition, t.frame}, loop, frame, depth + 1);
    });
    return found;
}

// load(registers, memory): the values that the call writes into the variable; of a library function whose
// body is not read, the call itself.
void Terms::add_filled(const CallExpr& call, Term variable, std::vector<Term>& sources) const {
    const Frame* frame = enter(call, variable.frame);
    if (!frame) {
        const FunctionDecl* callee = call.getDirectCallee();
        const auto store = callee ? library_store(*callee, call) : std::nullopt;
        const bool emptied =
            store && pointee({call.getArg(store->target), variable.frame}).base != variable_in(variable);
        if (callee && !emptied) sources.push_back({&call, variable.frame});
        return;
    }
    for (const Write& w : frame->body->writes()) {
        if (!w.value || !w.target) continue;
        const Place into = place({w.target, frame});
        if (into.base == variable_in(variable) && into.frame == variable.frame)
            sources.push_back({w.value, frame});
    }
}

// What is stored through a pointer that the variable holds does not change its other members: args.p[i] = x, args.q.
bool Terms::is_beside(const Write& w, const FieldDecl* read, const Frame* frame) const {
    const FieldDecl* written =
        read && w.target ? dyn_cast_or_null<FieldDecl>(place({w.target, frame}).part) : nullptr;
    return written && written != read;
}

bool Terms::any_source(Term t, Visit visit) const {
    std::vector<Term> pending{t};
    std::map<const Expr*, const FieldDecl*> members;  // read of the object that the expression names
    std::set<std::tuple<const ValueDecl*, const FieldDecl*, const Frame*>> seen;
    std::size_t budget = kMostSources;
    while (!pending.empty()) {
        const Term next = pending.back();
        pending.pop_back();
        bool stop = false;
        for_each_expr(next.expr, [&](const Expr& e) {
            if (stop || budget == 0) return;
            --budget;
            const Term part{&e, next.frame};
            stop = visit(part);
            if (stop) return;
            if (const auto* call = dyn_cast<CallExpr>(&e)) {
                if (const Frame* frame = enter(*call, next.frame))
                    for (const Expr* value : frame->body->returned()) pending.push_back({value, frame});
            }
            if (isa<CXXThisExpr>(e))
                if (const Term object = object_of(next.frame)) pending.push_back(object);
            if (const auto* member = dyn_cast<MemberExpr>(&e))
                members[member->getBase()->IgnoreParenImpCasts()] =
                    dyn_cast<FieldDecl>(member->getMemberDecl());
            const VarDecl* variable = variable_in(part);
            const auto of = variable ? members.find(&e) : members.end();
            const FieldDecl* const read = of == members.end() ? nullptr : of->second;
            if (!variable || !seen.insert({variable, read, part.frame}).second) return;
            for (const Write* w : body_of(part.frame).writes_to(variable)) {
                if (is_beside(*w, read, part.frame)) continue;
                if (w->value) pending.push_back({w->value, part.frame});
                const auto* filled = w->kind == WriteKind::escape ? dyn_cast<CallExpr>(w->site) : nullptr;
                if (filled) add_filled(*filled, part, pending);
            }
            const Term source = strip(part);
            if (source.expr != part.expr) pending.push_back(source);
        });
        if (stop) return true;
    }
    return false;
}

}  // namespace mp::lint
