#include "analyzer/clang/terms.hpp"

#include <mutex>
#include <set>

#include "analyzer/clang/types.hpp"
#include "clang/AST/StmtCXX.h"

namespace mp::lint {
namespace {

using namespace clang;

constexpr unsigned kDeepestCall = 3;         // limit on nested helper calls that are entered
constexpr std::size_t kLargestHelper = 600;  // nodes of a body; larger functions are not entered
constexpr std::size_t kMostSummands = 64;
constexpr unsigned kDeepest = 24;  // limit for every recursion over expressions

bool is_number_class(QualType t) {
    const ElementType element = element_type(t);
    return is_float(element.dtype) && (element.shape == Shape::scalar || element.shape == Shape::vec);
}

// The argument that a construction passes on: of half classes, and of copies of any class.
const Expr* constructed_from(const CXXConstructExpr& construct) {
    if (construct.getNumArgs() == 0) return nullptr;
    const bool copies = construct.getConstructor()->isCopyOrMoveConstructor();
    return copies || is_number_class(construct.getType()) ? construct.getArg(0) : nullptr;
}

// Removes one syntactic layer that changes the type or lifetime of a value but not its meaning.
const Expr* unwrapped(const Expr* e, const ASTContext& context) {
    if (const auto* paren = dyn_cast<ParenExpr>(e)) return paren->getSubExpr();
    if (const auto* cast = dyn_cast<CastExpr>(e)) return cast->getSubExpr();
    if (const auto* full = dyn_cast<FullExpr>(e)) return full->getSubExpr();
    if (const auto* temporary = dyn_cast<MaterializeTemporaryExpr>(e)) return temporary->getSubExpr();
    if (const auto* bound = dyn_cast<CXXBindTemporaryExpr>(e)) return bound->getSubExpr();
    if (const auto* substituted = dyn_cast<SubstNonTypeTemplateParmExpr>(e))
        return substituted->getReplacement();
    if (const auto* property = dyn_cast<PseudoObjectExpr>(e)) return property->getSyntacticForm();
    if (const auto* list = dyn_cast<InitListExpr>(e))
        return list->getNumInits() == 1 ? list->getInit(0) : nullptr;
    if (const auto* construct = dyn_cast<CXXConstructExpr>(e)) return constructed_from(*construct);
    if (const auto* unary = dyn_cast<UnaryOperator>(e))
        return unary->getOpcode() == UO_Plus || unary->getOpcode() == UO_Extension ? unary->getSubExpr()
                                                                                   : nullptr;
    if (const auto* binary = dyn_cast<BinaryOperator>(e))  // the value of x = y is y, of (a, b) b
        return binary->getOpcode() == BO_Assign || binary->getOpcode() == BO_Comma ? binary->getRHS()
                                                                                   : nullptr;
    if (const auto* choice = dyn_cast<ConditionalOperator>(e)) {
        const auto taken = constant_condition(choice->getCond(), context);
        if (!taken) return nullptr;
        return *taken ? choice->getTrueExpr() : choice->getFalseExpr();
    }
    if (const auto* method = dyn_cast<CXXMemberCallExpr>(e))
        return isa_and_nonnull<CXXConversionDecl>(method->getMethodDecl())
                   ? method->getImplicitObjectArgument()
                   : nullptr;
    return nullptr;
}

}  // namespace

void for_each_expr(const Stmt* s, llvm::function_ref<void(const Expr&)> visit) {
    llvm::SmallVector<const Stmt*, 16> pending{s};
    while (!pending.empty()) {
        const Stmt* next = pending.pop_back_val();
        if (!next || isa<LambdaExpr>(next)) continue;
        if (const auto* e = dyn_cast<Expr>(next)) visit(*e);
        if (const auto* property = dyn_cast<PseudoObjectExpr>(next))
            pending.push_back(property->getSyntacticForm());
        else
            pending.append(next->child_begin(), next->child_end());
    }
}

// An entry lives as long as its ASTContext, which runs a callback when it is destroyed.
UnitBodies& UnitBodies::of(ASTContext& context) {
    static std::mutex mutex;
    static std::map<const ASTContext*, std::unique_ptr<UnitBodies>> units;
    const std::scoped_lock lock(mutex);
    std::unique_ptr<UnitBodies>& unit = units[&context];
    if (!unit) {
        unit = std::make_unique<UnitBodies>();
        context.AddDeallocation(
            [](void* gone) {
                const std::scoped_lock guard(mutex);
                units.erase(static_cast<const ASTContext*>(gone));
            },
            &context);
    }
    return *unit;
}

const Body& UnitBodies::body(const FunctionDecl& function, ASTContext& context) {
    std::unique_ptr<Body>& body = bodies_[&function];
    if (!body) body = std::make_unique<Body>(function, context);
    return *body;
}

Terms::Terms(const FunctionDecl& function, ASTContext& context)
    : context_(context), bodies_(UnitBodies::of(context)), root_(bodies_.body(function, context)) {}

const Frame* Terms::enter(const CallExpr& call, const Frame* outer) const {
    const auto known = entered_.find({&call, outer});
    if (known != entered_.end()) return known->second;
    const Frame*& entered = entered_[{&call, outer}];
    const FunctionDecl* callee = call.getDirectCallee();
    const FunctionDecl* definition = nullptr;
    if (!callee || !callee->hasBody(definition) || is_library(*definition)) return nullptr;
    if (definition->isDefaulted() || definition->isDependentContext() || definition->isVariadic() ||
        &root_.function() == definition)
        return nullptr;
    const auto* method = dyn_cast<CXXMethodDecl>(definition);
    if (method && method->isVirtual()) return nullptr;
    const unsigned depth = outer ? outer->depth + 1 : 1;
    for (const Frame* f = outer; f; f = f->outer)
        if (f->callee == definition) return nullptr;
    if (depth > kDeepestCall) return nullptr;
    const Body& body = bodies_.body(*definition, context_);
    if (body.size() > kLargestHelper) return nullptr;
    frames_.push_back({outer, &call, definition, &body, depth});
    return entered = &frames_.back();
}

std::int32_t Terms::index_in_root(const ParmVarDecl& parameter) const {
    const bool own = parameter.getDeclContext() == Decl::castToDeclContext(&root_.function());
    return own ? static_cast<std::int32_t>(parameter.getFunctionScopeIndex()) : kNone;
}

Term Terms::argument_for(const ParmVarDecl& parameter, const Frame& frame) const {
    if (parameter.getDeclContext() != frame.callee) return {};
    const bool shifted = isa<CXXOperatorCallExpr>(frame.call) && isa<CXXMethodDecl>(frame.callee);
    const unsigned index = parameter.getFunctionScopeIndex() + (shifted ? 1 : 0);
    if (index >= frame.call->getNumArgs()) return {};
    return {frame.call->getArg(index), frame.outer};
}

Term Terms::strip_once(Term t) const {
    if (const Expr* inner = unwrapped(t.expr, context_)) return {inner, t.frame};
    if (const auto* ref = dyn_cast<DeclRefExpr>(t.expr); ref && t.frame) {
        const auto* parameter = dyn_cast<ParmVarDecl>(ref->getDecl());
        if (!parameter) return {};
        // A parameter by value that the helper changes is a separate variable.
        if (!parameter->getType()->isReferenceType())
            for (const Write* w : t.frame->body->writes_to(parameter))
                if (w->whole) return {};
        return argument_for(*parameter, *t.frame);
    }
    if (const auto* unary = dyn_cast<UnaryOperator>(t.expr); unary && unary->getOpcode() == UO_Deref) {
        const Term pointer = strip({unary->getSubExpr(), t.frame});
        const auto* address = dyn_cast<UnaryOperator>(pointer.expr);
        if (address && address->getOpcode() == UO_AddrOf) return {address->getSubExpr(), pointer.frame};
        return {};
    }
    const auto* call = dyn_cast<CallExpr>(t.expr);
    if (!call) return {};
    if (const FunctionDecl* callee = call->getDirectCallee()) {
        if (is_conversion(*callee) && call->getNumArgs() >= 1) return {call->getArg(0), t.frame};
        if (isa<CXXOperatorCallExpr>(call) && is_number_class(call->getType()) &&
            callee->isOverloadedOperator() && callee->getOverloadedOperator() != OO_Call &&
            callee->getOverloadedOperator() != OO_Subscript)
            return {};
        if (library_call(*callee, *call).kind != Arithmetic::none) return {};
    }
    const Frame* frame = enter(*call, t.frame);
    if (frame && frame->body->returned().size() == 1) return {frame->body->returned().front(), frame};
    return {};
}

Term Terms::strip(Term t) const {
    for (unsigned i = 0; t && i < 256; ++i) {
        const Term inner = strip_once(t);
        if (!inner) return t;
        t = inner;
    }
    return t;
}

Term Terms::resolve(Term t) const {
    t = strip(t);
    for (unsigned i = 0; t && i < kDeepest; ++i) {
        const auto* ref = dyn_cast<DeclRefExpr>(t.expr);
        const auto* variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
        const Expr* definition = body_of(t.frame).definition(variable);
        if (!definition) return t;
        t = strip({definition, t.frame});
    }
    return t;
}

Arith Terms::of_call(const CallExpr& call, const Frame* frame) const {
    const FunctionDecl* callee = call.getDirectCallee();
    if (!callee) return {};
    const LibraryCall library = library_call(*callee, call);
    Arith result{library.kind, {}};
    for (unsigned i = library.first; i < call.getNumArgs() && result.args.size() < 3; ++i)
        result.args.push_back({call.getArg(i), frame});
    const std::size_t needed = library.kind == Arithmetic::fma || library.kind == Arithmetic::lerp ? 3 : 1;
    if (result.kind == Arithmetic::none || result.args.size() < needed) return {};
    if (result.kind == Arithmetic::square && (result.args.size() < 2 || number(result.args[1]) != 2.0))
        return {};
    const bool binary = result.kind >= Arithmetic::add && result.kind <= Arithmetic::divide;
    if ((binary || result.kind == Arithmetic::max || result.kind == Arithmetic::min) &&
        result.args.size() < 2)
        return {};
    return result;
}

Arith Terms::arithmetic(Term t) const {
    t = strip(t);
    if (!t) return {};
    if (const auto* binary = dyn_cast<BinaryOperator>(t.expr)) {
        Arith result{Arithmetic::none, {{binary->getLHS(), t.frame}, {binary->getRHS(), t.frame}}};
        if (!binary->getType()->isArithmeticType()) return {};
        switch (binary->getOpcode()) {
            case BO_Add:
                result.kind = Arithmetic::add;
                return result;
            case BO_Sub:
                result.kind = Arithmetic::subtract;
                return result;
            case BO_Mul:
                result.kind = Arithmetic::multiply;
                return result;
            case BO_Div:
                result.kind = Arithmetic::divide;
                return result;
            default:
                return {};
        }
    }
    if (const auto* unary = dyn_cast<UnaryOperator>(t.expr); unary && unary->getOpcode() == UO_Minus)
        return {Arithmetic::negate, {{unary->getSubExpr(), t.frame}}};
    if (const auto* choice = dyn_cast<ConditionalOperator>(t.expr))
        return {Arithmetic::select, {{choice->getTrueExpr(), t.frame}, {choice->getFalseExpr(), t.frame}}};
    if (const auto* op = dyn_cast<CXXOperatorCallExpr>(t.expr)) {
        Arith result;
        for (const Expr* argument : op->arguments()) result.args.push_back({argument, t.frame});
        const bool two = result.args.size() == 2;
        switch (op->getOperator()) {
            case OO_Plus:
                result.kind = two ? Arithmetic::add : Arithmetic::none;
                return result;
            case OO_Minus:
                result.kind = two ? Arithmetic::subtract : Arithmetic::negate;
                return result;
            case OO_Star:
                result.kind = two ? Arithmetic::multiply : Arithmetic::none;
                return result;
            case OO_Slash:
                result.kind = two ? Arithmetic::divide : Arithmetic::none;
                return result;
            default:
                return {};
        }
    }
    if (const auto* call = dyn_cast<CallExpr>(t.expr)) return of_call(*call, t.frame);
    return {};
}

std::optional<Comparison> Terms::comparison(Term condition) const {
    condition = strip(condition);
    const auto ordered = [&](const Expr* a, const Expr* b, bool less) {
        return Comparison{{less ? a : b, condition.frame}, {less ? b : a, condition.frame}};
    };
    if (const auto* op = dyn_cast<CXXOperatorCallExpr>(condition.expr); op && op->getNumArgs() == 2) {
        const OverloadedOperatorKind kind = op->getOperator();
        const bool less = kind == OO_Less || kind == OO_LessEqual;
        if (less || kind == OO_Greater || kind == OO_GreaterEqual)
            return ordered(op->getArg(0), op->getArg(1), less);
    }
    const auto* op = dyn_cast<BinaryOperator>(condition.expr);
    if (!op) return std::nullopt;
    if (op->isRelationalOp())
        return ordered(op->getLHS(), op->getRHS(), op->getOpcode() == BO_LT || op->getOpcode() == BO_LE);
    if (!op->isLogicalOp()) return std::nullopt;
    // The side that remains when the other is constant: (KIND == MAX && a > b) || ...
    const auto left = constant_condition(op->getLHS(), context_),
               right = constant_condition(op->getRHS(), context_);
    if (left) return comparison({op->getRHS(), condition.frame});
    return right ? comparison({op->getLHS(), condition.frame}) : std::nullopt;
}

void Terms::factors(Term t, llvm::SmallVectorImpl<Term>& out) const {
    if (out.size() >= kDeepest) return;
    t = resolve(t);
    const Arith a = arithmetic(t);
    if (a.kind == Arithmetic::multiply) {
        factors(a.args[0], out);
        factors(a.args[1], out);
    } else if (a.kind == Arithmetic::square) {
        out.append({strip(a.args[0]), strip(a.args[0])});
    } else if (a.kind == Arithmetic::negate) {
        factors(a.args[0], out);
    } else {
        out.push_back(t);
    }
}

void Terms::add_summands(Term t, bool negative, unsigned depth, std::vector<Summand>& out) const {
    if (!t || depth > kDeepest || out.size() >= kMostSummands) return;
    const Term stripped = strip(t);
    const Term resolved = resolve(t);
    const Arith a = arithmetic(resolved);
    if (a.kind == Arithmetic::add || a.kind == Arithmetic::subtract) {
        add_summands(a.args[0], negative, depth + 1, out);
        add_summands(a.args[1], negative != (a.kind == Arithmetic::subtract), depth + 1, out);
        return;
    }
    if (a.kind == Arithmetic::negate) return add_summands(a.args[0], !negative, depth + 1, out);
    if (a.kind != Arithmetic::fma && a.kind != Arithmetic::multiply) {
        out.push_back({negative, a.kind == Arithmetic::none ? stripped : resolved, {}});
        if (a.kind == Arithmetic::square) factors(resolved, out.back().factors);
        return;
    }
    const bool is_fma = a.kind == Arithmetic::fma;
    Summand product{negative, is_fma ? strip(a.args[0]) : resolved, {}, is_fma};
    for (const Term factor : {a.args[0], a.args[1]}) {
        const Term f = resolve(factor);
        if (arithmetic(f).kind == Arithmetic::negate) product.negative = !product.negative;
        factors(f, product.factors);
    }
    out.push_back(std::move(product));
    if (is_fma) add_summands(a.args[2], negative, depth + 1, out);
}

std::vector<Summand> Terms::summands(Term t) const {
    std::vector<Summand> out;
    add_summands(t, false, 0, out);
    return out;
}

bool Terms::is_square(const Summand& s) const {
    return s.factors.size() == 2 && same(s.factors[0], s.factors[1]) && !number(s.factors[0]);
}

}  // namespace mp::lint
