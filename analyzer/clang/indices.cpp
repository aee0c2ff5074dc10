// Integers: whether they are positions, and upper bounds of their values.

#include <algorithm>

#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/thread_index.hpp"
#include "analyzer/clang/types.hpp"

namespace mp::lint {
namespace {

using namespace clang;

constexpr unsigned kDeepest = 16;
constexpr std::uint64_t kBlockSide =
    1024;  // threads of a block along x or y; 64 along z (CUDA programming guide)
constexpr std::uint64_t kBlockDepth = 64;

std::uint64_t range_of(QualType type, const ASTContext& context) {
    if (type->isBooleanType()) return 1;
    const unsigned bits = static_cast<unsigned>(context.getTypeSize(type));
    if (bits > 16) return 0;
    return type->isUnsignedIntegerType() ? (std::uint64_t{1} << bits) - 1 : std::uint64_t{1} << (bits - 1);
}

std::uint64_t combine(BinaryOperatorKind op, std::uint64_t a, std::uint64_t b) {
    std::uint64_t result = 0;
    if (a == 0 || b == 0) return 0;
    if (op == BO_Mul) return __builtin_mul_overflow(a, b, &result) ? 0 : result;
    return __builtin_add_overflow(a, b, &result) ? 0 : result;
}

bool is_count_kind(const Body& body, const Write& w) {
    if (w.kind == WriteKind::step) return !body.loops_around(w.site).empty();
    return w.kind == WriteKind::add && body.constant(w.value) && !body.loops_around(w.site).empty();
}

// The tighter of two upper bounds; 0 means unknown.
std::uint64_t tighter(std::uint64_t a, std::uint64_t b) {
    if (a == 0 || b == 0) return std::max(a, b);
    return std::min(a, b);
}

}  // namespace

bool Flow::is_index(Term t, unsigned depth) const {
    if (!t || depth > kDeepest) return false;
    t = terms.strip(t);
    if (is_position(t.expr))
        return true;  // tested before its type, because a property has no type of its
                      // own
    if (!t.expr->getType()->isIntegralOrEnumerationType()) return false;
    if (const auto* binary = dyn_cast<BinaryOperator>(t.expr)) {
        if (!binary->isAdditiveOp() && !binary->isMultiplicativeOp() && !binary->isShiftOp() &&
            !binary->isBitwiseOp())
            return false;
        return is_index({binary->getLHS(), t.frame}, depth + 1) ||
               is_index({binary->getRHS(), t.frame}, depth + 1);
    }
    if (const auto* choice = dyn_cast<ConditionalOperator>(t.expr))
        return is_index({choice->getTrueExpr(), t.frame}, depth + 1) ||
               is_index({choice->getFalseExpr(), t.frame}, depth + 1);
    const auto* ref = dyn_cast<DeclRefExpr>(t.expr);
    const auto* variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
    if (!variable) return false;
    const Body& body = terms.body_of(t.frame);
    if (body.loop_of_counter(variable)) return true;
    const auto writes = body.writes_to(variable);
    return std::ranges::any_of(writes, [&](const Write* w) {
        return w->whole &&
               (is_count_kind(body, *w) || (w->value && is_index({w->value, t.frame}, depth + 1)));
    });
}

std::uint64_t Flow::bound_of(Term t, unsigned depth) const {
    if (!t || depth > kDeepest) return 0;
    std::uint64_t narrow = 0;  // bound by the types of the conversions it passes through
    for (const Expr* e = t.expr; e;) {
        if (e->getType()->isIntegralOrEnumerationType())
            narrow = tighter(narrow, range_of(e->getType(), context));
        const auto* cast = dyn_cast<CastExpr>(e->IgnoreParens());
        e = cast ? cast->getSubExpr() : nullptr;
    }
    t = terms.strip(t);
    if (const llvm::StringRef side = coordinate_of(t.expr, "threadIdx"); !side.empty())
        return side == "z" ? kBlockDepth - 1 : kBlockSide - 1;
    if (const llvm::StringRef side = coordinate_of(t.expr, "blockDim"); !side.empty())
        return side == "z" ? kBlockDepth : kBlockSide;
    if (!t.expr->getType()->isIntegralOrEnumerationType()) return 0;
    narrow = tighter(narrow, range_of(t.expr->getType(), context));
    const Body& body = terms.body_of(t.frame);
    if (const auto value = body.constant(t.expr)) {
        const std::uint64_t size =
            *value < 0 ? std::uint64_t(0) - std::uint64_t(*value) : std::uint64_t(*value);
        return std::max<std::uint64_t>(size, 1);
    }
    return tighter(narrow, bound_of_value(t, depth));
}

std::uint64_t Flow::bound_of_value(Term t, unsigned depth) const {
    const auto bound = [&](const Expr* e) { return bound_of({e, t.frame}, depth + 1); };
    const Body& body = terms.body_of(t.frame);
    if (const auto* binary = dyn_cast<BinaryOperator>(t.expr)) {
        const auto right = body.constant(binary->getRHS());
        switch (binary->getOpcode()) {
            case BO_Add:
            case BO_Sub:
            case BO_Mul:
                return combine(binary->getOpcode(), bound(binary->getLHS()), bound(binary->getRHS()));
            case BO_Div: {
                const std::uint64_t whole = bound(binary->getLHS());
                return whole && right && *right > 1
                           ? std::max<std::uint64_t>(whole / std::uint64_t(*right), 1)
                           : whole;
            }
            case BO_Rem: {
                const std::uint64_t n = bound(binary->getRHS());
                return n ? std::max<std::uint64_t>(n - 1, 1) : bound(binary->getLHS());
            }
            case BO_And: {  // a mask that is not negative
                if (right && *right >= 0) return std::max<std::uint64_t>(std::uint64_t(*right), 1);
                const auto left = body.constant(binary->getLHS());
                return left && *left >= 0 ? std::max<std::uint64_t>(std::uint64_t(*left), 1) : 0;
            }
            case BO_Shr:
                return bound(binary->getLHS()) >> (right && *right > 0 && *right < 63 ? *right : 0);
            default:
                return binary->isComparisonOp() || binary->isLogicalOp() ? 1 : 0;
        }
    }
    if (const auto* unary = dyn_cast<UnaryOperator>(t.expr))
        return unary->getOpcode() == UO_Minus ? bound(unary->getSubExpr()) : 0;
    if (const auto* choice = dyn_cast<ConditionalOperator>(t.expr)) {
        const std::uint64_t a = bound(choice->getTrueExpr()), b = bound(choice->getFalseExpr());
        return a && b ? std::max(a, b) : 0;
    }
    const auto* ref = dyn_cast<DeclRefExpr>(t.expr);
    const auto* variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
    if (!variable) return 0;
    if (const Stmt* loop = body.loop_of_counter(variable)) return body.describe(loop).largest;
    const Expr* definition = body.definition(variable);
    return definition ? bound(definition) : 0;
}

}  // namespace mp::lint
