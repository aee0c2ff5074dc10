// The role of a value, derived from the expression or variable that it flows into. Used for constants.

#include <algorithm>

#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/StmtCXX.h"

namespace mp::lint {
namespace {

using namespace clang;

constexpr unsigned kDeepest = 8;

Role role_of_operator(BinaryOperatorKind op, bool right) {
    switch (op) {
        case BO_Add:
        case BO_Sub:
        case BO_AddAssign:
        case BO_SubAssign:
            return Role::added;
        case BO_Mul:
        case BO_MulAssign:
            return Role::multiplier;
        case BO_Div:
        case BO_DivAssign:
            return right ? Role::divisor : Role::none;
        default:
            return BinaryOperator::isComparisonOp(op) ? Role::compared : Role::none;
    }
}

BinaryOperatorKind binary_of(OverloadedOperatorKind op) {
    switch (op) {
        case OO_Plus:
            return BO_Add;
        case OO_Minus:
            return BO_Sub;
        case OO_Star:
            return BO_Mul;
        case OO_Slash:
            return BO_Div;
        case OO_PlusEqual:
            return BO_AddAssign;
        case OO_MinusEqual:
            return BO_SubAssign;
        case OO_StarEqual:
            return BO_MulAssign;
        case OO_SlashEqual:
            return BO_DivAssign;
        case OO_Less:
        case OO_Greater:
        case OO_LessEqual:
        case OO_GreaterEqual:
        case OO_EqualEqual:
        case OO_ExclaimEqual:
            return BO_LT;
        default:
            return BO_Comma;
    }
}

Role role_of_library(Arithmetic kind, unsigned argument) {
    switch (kind) {
        case Arithmetic::add:
        case Arithmetic::subtract:
            return Role::added;
        case Arithmetic::multiply:
            return Role::multiplier;
        case Arithmetic::divide:
            return argument == 1 ? Role::divisor : Role::none;
        case Arithmetic::fma:
            return argument == 2 ? Role::added : Role::multiplier;
        case Arithmetic::max:
        case Arithmetic::min:
        case Arithmetic::clamp:
            return Role::clamp;
        default:
            return Role::none;
    }
}

const VarDecl* variable_of(const Expr* e) {
    const auto* ref = e ? dyn_cast<DeclRefExpr>(e->IgnoreParenImpCasts()) : nullptr;
    return ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
}

// The call whose result the expression is, without conversions.
const CallExpr* called_in(const Expr* e) {
    for (;;) {
        e = e->IgnoreUnlessSpelledInSource()->IgnoreParenCasts();
        const auto* construct = dyn_cast<CXXConstructExpr>(e);
        if (!construct || construct->getNumArgs() != 1) return dyn_cast<CallExpr>(e);
        e = construct->getArg(0);
    }
}

// (1 - mask) * c
bool is_complement(const Terms& terms, const Expr* e) {
    const Arith a = terms.arithmetic(terms.resolve({e, nullptr}));
    return a.kind == Arithmetic::subtract && terms.number(a.args[0]) == 1.0;
}

// What guards a division somewhere: Loss(__float2half(1e-7)), with a parameter `epsilon`.
bool is_epsilon(const FunctionDecl& callee, unsigned index) {
    return index < callee.getNumParams() && callee.getParamDecl(index)->getName().contains_insensitive("eps");
}

bool is_epsilon(const CXXConstructExpr& construct, const Stmt* argument) {
    for (unsigned i = 0; i < construct.getNumArgs(); ++i)
        if (construct.getArg(i) == argument) return is_epsilon(*construct.getConstructor(), i);
    return false;
}

}  // namespace

Role Flow::role_of(const Body& body, const Expr& e, unsigned depth) const {
    if (depth > kDeepest) return Role::none;
    const Stmt* child = &e;
    for (const Stmt* up = body.parent(child); up; child = up, up = body.parent(child)) {
        const auto* parent = dyn_cast<Expr>(up);
        const auto* unary = dyn_cast<UnaryOperator>(up);
        const auto* construct = dyn_cast<CXXConstructExpr>(up);
        const auto* call = dyn_cast<CallExpr>(up);
        const FunctionDecl* callee = call ? call->getDirectCallee() : nullptr;
        if (construct && is_epsilon(*construct, child)) return Role::added;
        const bool passes = isa<ParenExpr, CastExpr, FullExpr, MaterializeTemporaryExpr, CXXBindTemporaryExpr,
                                InitListExpr, SubstNonTypeTemplateParmExpr>(up) ||
                            (unary && (unary->getOpcode() == UO_Minus || unary->getOpcode() == UO_Plus)) ||
                            (construct && construct->getNumArgs() >= 1) ||
                            (callee && is_conversion(*callee)) || (call && is_value_passed_on(*call));
        if (parent && passes) continue;
        const auto* used = dyn_cast<Expr>(child);
        return used ? role_in(body, *used, *up, depth) : Role::none;
    }
    return Role::none;
}

// A helper that only converts its argument: cuda_cast<half>(1e-8f).
bool Flow::is_value_passed_on(const CallExpr& call) const {
    if (call.getNumArgs() != 1 || isa<CXXMemberCallExpr>(call)) return false;
    const Term returned = terms.strip({&call, nullptr});
    const Term argument = terms.strip({call.getArg(0), nullptr});
    return returned.expr != &call && returned.expr == argument.expr;
}

Role Flow::role_in(const Body& body, const Expr& used, const Stmt& parent, unsigned depth) const {
    if (const auto* binary = dyn_cast<BinaryOperator>(&parent)) {
        const bool right = binary->getRHS() == &used;
        if (binary->getOpcode() == BO_Assign && right) return role_of_store(body, *binary->getLHS(), depth);
        const Expr* other = right ? binary->getLHS() : binary->getRHS();
        if (binary->getOpcode() == BO_Mul && is_complement(terms, other)) return Role::mask_fill;
        return role_of_operator(binary->getOpcode(), right);
    }
    if (const auto* choice = dyn_cast<ConditionalOperator>(&parent)) {
        if (choice->getCond() == &used) return Role::none;
        const Role whole = role_of(body, *choice, depth + 1);
        return whole == Role::max_identity || whole == Role::divisor ? whole : Role::mask_fill;
    }
    if (const auto* op = dyn_cast<CXXOperatorCallExpr>(&parent)) {
        if (op->getOperator() == OO_Equal) {
            const bool stored = op->getNumArgs() == 2 && op->getArg(1) == &used;
            return stored ? role_of_store(body, *op->getArg(0), depth) : Role::none;
        }
        const bool right = op->getNumArgs() == 2 && op->getArg(1) == &used;
        const BinaryOperatorKind kind = binary_of(op->getOperator());
        if (kind == BO_Mul && is_complement(terms, op->getArg(right ? 0 : 1))) return Role::mask_fill;
        if (kind != BO_Comma && op->getNumArgs() == 2) return role_of_operator(kind, right);
    }
    if (const auto* call = dyn_cast<CallExpr>(&parent)) return role_of_argument(body, *call, used, depth);
    if (const auto* declaration = dyn_cast<DeclStmt>(&parent)) {
        for (const Decl* d : declaration->decls()) {
            const auto* variable = dyn_cast<VarDecl>(d);
            if (variable && variable->getInit() && body.contains(variable->getInit(), &used))
                return role_of_variable(body, *variable, depth + 1);
        }
    }
    return Role::none;
}

Role Flow::role_of_store(const Body& body, const Expr& target, unsigned depth) const {
    if (const VarDecl* variable = variable_of(&target)) return role_of_variable(body, *variable, depth + 1);
    const VarDecl* array = &body == &terms.root() ? terms.array_of({&target, nullptr}) : nullptr;
    return array && is_extreme_array(*array) ? Role::max_identity : Role::none;
}

Role Flow::role_of_argument(const Body& body, const CallExpr& call, const Expr& used, unsigned depth) const {
    const FunctionDecl* callee = call.getDirectCallee();
    if (!callee) return Role::none;
    unsigned argument = 0;
    while (argument < call.getNumArgs() && call.getArg(argument) != &used) ++argument;
    if (argument == call.getNumArgs()) return Role::none;
    const LibraryCall library = library_call(*callee, call);
    if (library.kind != Arithmetic::none) {
        if (library.kind == Arithmetic::multiply && is_complement(terms, call.getArg(argument == 0 ? 1 : 0)))
            return Role::mask_fill;
        return role_of_library(library.kind, argument);
    }
    const llvm::StringRef name = callee->getIdentifier() ? callee->getName() : llvm::StringRef();
    if (name == "masked_fill" || name == "masked_fill_") return Role::mask_fill;
    const bool shifted = isa<CXXOperatorCallExpr>(call) && isa<CXXMethodDecl>(callee);
    if (shifted && argument == 0) return Role::none;
    const unsigned index = argument - (shifted ? 1 : 0);
    if (finds_extreme(*callee, 0)) return Role::max_identity;
    // Otherwise the use of the parameter inside the helper decides.
    const Frame* frame = depth < kDeepest ? terms.enter(call, nullptr) : nullptr;
    const Role named = is_epsilon(*callee, index) ? Role::added : Role::none;
    if (!frame || index >= frame->callee->getNumParams() || frame->body == &body) return named;
    const Role used_as = role_of_variable(*frame->body, *frame->callee->getParamDecl(index), depth + 2);
    return used_as == Role::none ? named : used_as;
}

Role Flow::role_of_variable(const Body& body, const VarDecl& variable, unsigned depth) const {
    if (depth > kDeepest) return Role::none;
    if (is_extreme_variable(body, variable, depth)) return Role::max_identity;
    // Only a variable that keeps its value is followed: another assignment would replace the constant.
    const bool keeps = isa<ParmVarDecl>(variable) || body.definition(&variable);
    if (!keeps) return Role::none;
    for (const DeclRefExpr* use : body.uses_of(&variable)) {
        const Role role = role_of(body, *use, depth + 1);
        if (role != Role::none) return role;
    }
    return Role::none;
}

// After its first value, the variable only takes larger (or only smaller) values.
bool Flow::is_extreme_variable(const Body& body, const VarDecl& variable, unsigned depth) const {
    bool extreme_write = false;
    for (const Write* w : body.writes_to(&variable)) {
        if (w->kind == WriteKind::escape || !w->value) continue;
        const CallExpr* call = called_in(w->value);
        const FunctionDecl* callee = call ? call->getDirectCallee() : nullptr;
        if (callee && library_call(*callee, *call).kind == Arithmetic::none &&
            finds_extreme(*callee, depth)) {
            extreme_write = true;
            continue;
        }
        if (w->kind != WriteKind::assign) continue;
        if (terms.number({w->value, nullptr})) continue;  // another initial value
        if (is_own_shuffle(*w, variable)) continue;
        if (&body == &terms.root() && is_extreme_beside(*w, variable)) {
            extreme_write = true;
            continue;
        }
        Step step = step_of(*w, nullptr, w->site, nullptr);
        if (&body == &terms.root() && extreme(step))
            extreme_write = true;
        else if (w->whole && &body == &terms.root() && !is_select_with_constant(*w))
            return false;
    }
    if (extreme_write) return true;
    for (const DeclRefExpr* use : body.uses_of(&variable)) {
        const Stmt* up = body.parent(use);
        while (up && isa<CastExpr, ParenExpr, MaterializeTemporaryExpr, CXXConstructExpr>(up))
            up = body.parent(up);
        const auto* call = dyn_cast_or_null<CallExpr>(up);
        const FunctionDecl* callee =
            call && !isa<CXXOperatorCallExpr>(call) ? call->getDirectCallee() : nullptr;
        if (callee && library_call(*callee, *call).kind == Arithmetic::none && finds_extreme(*callee, depth))
            return true;
    }
    return false;
}

// largest = __shfl_sync(mask, largest, 0)
bool Flow::is_own_shuffle(const Write& w, const VarDecl& variable) const {
    const CallExpr* call = called_in(w.value);
    const FunctionDecl* callee = call ? call->getDirectCallee() : nullptr;
    return callee && library_call(*callee, *call).kind == Arithmetic::shuffle &&
           llvm::any_of(call->arguments(), [&](const Expr* a) {
               return variable_of(terms.strip({a, nullptr}).expr) == &variable;
           });
}

// largest = next, where next = max(largest, x) or max(largest + step, x)
bool Flow::is_extreme_beside(const Write& w, const VarDecl& variable) const {
    const auto is_it = [&](Term t) { return variable_of(terms.strip(t).expr) == &variable; };
    const auto has_it = [&](Term t) {
        const Arith a = terms.arithmetic(t);
        const bool shifts = a.kind == Arithmetic::add || a.kind == Arithmetic::subtract;
        return is_it(t) || (shifts && std::ranges::any_of(a.args, is_it));
    };
    const Term value{w.value, nullptr};
    return variable_of(terms.strip(value).expr) && is_extreme_in(value, has_it, kDeepest - 1);
}

// maximum[i] = max(maximum[i], x), also through variables: new = max(old, x); maximum[i] = new. Pointers into one
// shared memory are told apart by their names.
bool Flow::is_extreme_array(const VarDecl& array) const {
    const auto is_in_array = [&](Term t) { return terms.array_of(terms.resolve(t)) == &array; };
    return std::ranges::any_of(steps, [&](const Step& s) {
        return !s.frame && terms.array_of(s.target) == &array && is_extreme_in(s.value, is_in_array, 0);
    });
}

bool Flow::is_extreme_in(Term value, llvm::function_ref<bool(Term)> is_it, unsigned depth) const {
    const Arith a = terms.arithmetic(value);
    if (a.kind == Arithmetic::max || a.kind == Arithmetic::min) return llvm::any_of(a.args, is_it);
    const VarDecl* variable = depth < kDeepest ? variable_of(terms.strip(value).expr) : nullptr;
    return variable && std::ranges::any_of(terms.root().writes_to(variable), [&](const Write* w) {
               return w->value && is_extreme_in({w->value, nullptr}, is_it, depth + 1);
           });
}

// `v = lane < n ? shared[lane] : -1e20f` initialises the variable; it is not a comparison.
bool Flow::is_select_with_constant(const Write& w) const {
    const Arith a = terms.arithmetic({w.value, nullptr});
    return a.kind == Arithmetic::select && (terms.number(a.args[0]) || terms.number(a.args[1]));
}

// Whether the callee is a max or min reduction: it combines its parameter with shuffles of the parameter by
// max or min.
bool Flow::finds_extreme(const FunctionDecl& callee, unsigned depth) const {
    const FunctionDecl* definition = nullptr;
    if (depth > 3 || !callee.hasBody(definition) || is_library(*definition) ||
        definition->isDependentContext())
        return false;
    const Body& body = terms.body_for(*definition);
    bool shuffles = false, joins = false, inner = false;
    for (const Expr* e : body.calls()) {
        const auto* call = cast<CallExpr>(e);
        const FunctionDecl* f = call->getDirectCallee();
        if (!f) continue;
        const Arithmetic kind = library_call(*f, *call).kind;
        shuffles = shuffles || kind == Arithmetic::shuffle;
        joins = joins || kind == Arithmetic::max || kind == Arithmetic::min;
        const FunctionDecl* same = nullptr;
        inner = inner || (kind == Arithmetic::none && f->hasBody(same) && same != definition &&
                          finds_extreme(*f, depth + 1));
    }
    return inner || (shuffles && joins);
}

}  // namespace mp::lint
