// Loops: their counters, their trip counts, and whether they halve.

#include <algorithm>
#include <cstdlib>

#include "analyzer/clang/body.hpp"
#include "analyzer/clang/thread_index.hpp"
#include "clang/AST/StmtCXX.h"

namespace mp::lint {
namespace {

using namespace clang;

constexpr int kMostLookups = 8;            // variables followed to find one constant
constexpr std::uint64_t kMostSteps = 128;  // halving ends after 64 steps; a longer loop does not halve
constexpr std::int64_t kMostBlocks = 16;   // of a thread block cluster (CUDA C++ Programming Guide)

const VarDecl* variable_of(const Expr* e) {
    const auto* ref = e ? dyn_cast<DeclRefExpr>(e->IgnoreParenImpCasts()) : nullptr;
    return ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
}

// cluster.num_blocks() - 1: the blocks of a thread block cluster, but for a few.
bool is_cluster_size(const Expr* e) {
    e = e->IgnoreParenImpCasts();
    if (const auto* binary = dyn_cast<BinaryOperator>(e); binary && binary->getOpcode() == BO_Sub)
        return is_cluster_size(binary->getLHS());
    const auto* call = dyn_cast<CallExpr>(e);
    const auto* method = call ? dyn_cast_or_null<CXXMethodDecl>(call->getCalleeDecl()) : nullptr;
    return method && method->getDeclName().isIdentifier() && method->getName() == "num_blocks" &&
           method->getParent()->getName() == "cluster_group";
}

char letter_of(BinaryOperatorKind op) {
    switch (op) {
        case BO_Add:
        case BO_AddAssign:
            return '+';
        case BO_Sub:
        case BO_SubAssign:
            return '-';
        case BO_Mul:
        case BO_MulAssign:
            return '*';
        case BO_Div:
        case BO_DivAssign:
            return '/';
        case BO_Shl:
        case BO_ShlAssign:
            return '<';
        case BO_Shr:
        case BO_ShrAssign:
            return '>';
        default:
            return 0;
    }
}

bool holds(BinaryOperatorKind op, std::int64_t a, std::int64_t b) {
    switch (op) {
        case BO_LT:
            return a < b;
        case BO_LE:
            return a <= b;
        case BO_GT:
            return a > b;
        case BO_GE:
            return a >= b;
        case BO_NE:
            return a != b;
        default:
            return false;
    }
}

// False when the step would overflow.
bool advance(std::int64_t& value, char op, std::int64_t step) {
    switch (op) {
        case '+':
            return !__builtin_add_overflow(value, step, &value);
        case '-':
            return !__builtin_sub_overflow(value, step, &value);
        case '*':
            return !__builtin_mul_overflow(value, step, &value);
        case '/':
            return step != 0 && step != -1 && (value /= step, true);
        case '<':
            return step >= 0 && step < 63 && !__builtin_mul_overflow(value, std::int64_t{1} << step, &value);
        case '>':
            return step >= 0 && step < 63 && (value >>= step, true);
        default:
            return false;
    }
}

bool is_geometric(char op, std::optional<std::int64_t> step) {
    if (op == '<' || op == '>') return step == 1;
    return (op == '*' || op == '/') && step == 2;
}

struct Count {
    std::uint64_t trips = 0;
    std::uint64_t largest = 0;
};

std::uint64_t magnitude(std::int64_t v) {
    return v < 0 ? std::uint64_t(0) - std::uint64_t(v) : std::uint64_t(v);
}

Count count_linear(std::int64_t start, std::int64_t bound, BinaryOperatorKind op, std::int64_t step) {
    if (step == 0 || !holds(op, start, bound)) return {};
    const bool up = step > 0;
    if (op == BO_NE ? (bound > start) != up : (op == BO_LT || op == BO_LE) != up) return {};
    const std::uint64_t distance =
        up ? std::uint64_t(bound) - std::uint64_t(start) : std::uint64_t(start) - std::uint64_t(bound);
    const std::uint64_t stride = magnitude(step);
    const std::uint64_t inclusive = op == BO_LE || op == BO_GE ? 1 : 0;
    const std::uint64_t trips = inclusive ? distance / stride + 1 : (distance + stride - 1) / stride;
    return {trips, std::max(magnitude(start), magnitude(bound))};
}

Count count_geometric(std::int64_t value, std::int64_t bound, BinaryOperatorKind op, char letter,
                      std::int64_t step) {
    Count count{0, magnitude(value)};
    while (holds(op, value, bound)) {
        count.largest = std::max(count.largest, magnitude(value));
        if (++count.trips > kMostSteps || !advance(value, letter, step)) return {};
    }
    return count;
}

}  // namespace

std::optional<std::int64_t> Body::constant(const Expr* e) const {
    for (int i = 0; e && i < kMostLookups; ++i) {
        if (!can_evaluate(e) || !e->getType()->isIntegralOrEnumerationType()) return std::nullopt;
        Expr::EvalResult result;
        if (e->EvaluateAsInt(result, context_) && !result.HasSideEffects &&
            result.Val.getInt().isRepresentableByInt64())
            return result.Val.getInt().getExtValue();
        const VarDecl* variable = variable_of(e->IgnoreParenCasts());
        e = variable ? definition(variable) : nullptr;
    }
    return std::nullopt;
}

// `i += 2`, `--i`, `i = i / 2`: the variable, the operator and the step.
std::optional<std::int64_t> Body::step_of(const Expr* inc, const VarDecl*& counter, char& op) const {
    counter = nullptr;
    op = 0;
    if (!inc) return std::nullopt;
    inc = inc->IgnoreParenImpCasts();
    if (const auto* unary = dyn_cast<UnaryOperator>(inc); unary && unary->isIncrementDecrementOp()) {
        counter = variable_of(unary->getSubExpr());
        op = '+';
        return unary->isIncrementOp() ? 1 : -1;
    }
    const auto* binary = dyn_cast<BinaryOperator>(inc);
    if (!binary) return std::nullopt;
    if (binary->getOpcode() == BO_Comma) return step_of(binary->getLHS(), counter, op);
    if (!binary->isAssignmentOp()) return std::nullopt;
    counter = variable_of(binary->getLHS());
    if (binary->isCompoundAssignmentOp()) {
        op = letter_of(binary->getOpcode());
        return constant(binary->getRHS());
    }
    const auto* value = dyn_cast<BinaryOperator>(binary->getRHS()->IgnoreParenCasts());
    if (!value || !counter || variable_of(value->getLHS()) != counter) return std::nullopt;
    op = letter_of(value->getOpcode());
    return constant(value->getRHS());
}

void Body::count_trips(Loop& loop, const Expr* condition, const Expr* start, std::optional<std::int64_t> step,
                       char op) const {
    const auto* test = condition ? dyn_cast<BinaryOperator>(condition->IgnoreParenImpCasts()) : nullptr;
    std::optional<std::int64_t> bound;
    BinaryOperatorKind relation = BO_NE;
    if (test && (test->isRelationalOp() || test->isEqualityOp())) {
        const bool left = variable_of(test->getLHS()->IgnoreParenCasts()) == loop.counter;
        const bool right = variable_of(test->getRHS()->IgnoreParenCasts()) == loop.counter;
        if (left == right) return;
        const Expr* const last = left ? test->getRHS() : test->getLHS();
        bound = constant(last);
        if (!bound && is_cluster_size(last)) bound = kMostBlocks;
        relation = left ? test->getOpcode() : BinaryOperator::reverseComparisonOp(test->getOpcode());
    } else if (variable_of(condition ? condition->IgnoreParenCasts() : nullptr) == loop.counter) {
        bound = 0;  // for (; n; n /= 2)
    }
    if (!bound) return;
    // The thread at the first place takes most of the items.
    const auto first = loop.shared ? std::optional<std::int64_t>(0) : start ? constant(start) : std::nullopt;
    if (!first || !step) {  // for (i = threadIdx.x; i < 256; i += blockDim.x)
        if ((op == '+' || op == '*') && (relation == BO_LT || relation == BO_LE))
            loop.largest = magnitude(*bound);
        return;
    }
    Count count;
    if (op == '+' || op == '-')
        count = count_linear(*first, *bound, relation, op == '+' ? *step : -*step);
    else
        count = count_geometric(*first, *bound, relation, op, *step);
    loop.trips = count.trips;
    loop.never = !holds(relation, *first, *bound);
    loop.largest = count.largest;
}

// Whether the value depends on where the thread stands: tid, where `int tid = threadIdx.x`.
bool Body::is_placed(const Expr* e, unsigned depth) const {
    if (!e || depth > kMostLookups) return false;
    if (is_position(e)) return true;
    const VarDecl* variable = variable_of(e);
    if (variable) return is_placed(definition(variable), depth + 1);
    return std::ranges::any_of(e->children(), [&](const Stmt* child) {
        return is_placed(dyn_cast_or_null<Expr>(child), depth + 1);
    });
}

// for (i = threadIdx.x; i < n; i += blockDim.x): every thread takes its share of the items.
bool Body::is_shared(const Loop& loop, std::optional<std::int64_t> step, char op) const {
    if (op != '+' || (step && *step <= 1)) return false;
    return std::ranges::any_of(writes_to(loop.counter), [&](const Write* w) {
        const bool starts = w->kind == WriteKind::assign || w->kind == WriteKind::init;
        return w->whole && starts && is_placed(w->value);
    });
}

// for (i = 0; threadIdx.x + i * blockDim.x < n; ++i)
bool Body::is_shared_by_condition(const Loop& loop, const Expr* condition) const {
    const auto* test = condition ? dyn_cast<BinaryOperator>(condition->IgnoreParenImpCasts()) : nullptr;
    if (!test || (test->getOpcode() != BO_LT && test->getOpcode() != BO_LE)) return false;
    const auto* item = dyn_cast<BinaryOperator>(test->getLHS()->IgnoreParenImpCasts());
    if (!item || item->getOpcode() != BO_Add) return false;
    const auto strides = [&](const Expr* e) {
        const auto* product = dyn_cast<BinaryOperator>(e->IgnoreParenImpCasts());
        return product && product->getOpcode() == BO_Mul &&
               (variable_of(product->getLHS()) == loop.counter ||
                variable_of(product->getRHS()) == loop.counter);
    };
    return (is_placed(item->getLHS()) && strides(item->getRHS())) ||
           (strides(item->getLHS()) && is_placed(item->getRHS()));
}

Loop Body::describe_for(const ForStmt& statement) const {
    Loop loop{.stmt = &statement};
    char op = 0;
    const auto step = step_of(statement.getInc(), loop.counter, op);
    if (!loop.counter) return loop;
    loop.halving = is_geometric(op, step);
    const Expr* start = nullptr;
    unsigned moves = 0;
    for (const Write* w : writes_to(loop.counter)) {
        if (w->site == statement.getInit())
            start = w->value;
        else if (contains(&statement, w->site))
            ++moves;
    }
    if (const auto* init = dyn_cast_or_null<Expr>(statement.getInit()); init && !start)
        for (const Write* w : writes_to(loop.counter))
            if (contains(init, w->site)) start = w->value, --moves;
    if (!statement.getInit()) start = definition(loop.counter);
    loop.shared = is_shared(loop, step, op) || is_shared_by_condition(loop, statement.getCond());
    if (moves == 1) count_trips(loop, statement.getCond(), start, step, op);
    return loop;
}

// while (stride > 0) { ...; stride /= 2; }
Loop Body::describe_while(const Stmt& statement, const Expr* condition) const {
    Loop loop{.stmt = &statement};
    if (!condition) return loop;
    for (const Write& w : writes_) {
        if (!w.whole || !contains(&statement, w.site) || !isa_and_nonnull<VarDecl>(w.base)) continue;
        const auto& uses = uses_of(w.base);
        const bool tested =
            std::ranges::any_of(uses, [&](const DeclRefExpr* use) { return contains(condition, use); });
        const auto* moved = dyn_cast<Expr>(w.site);
        char op = 0;
        const VarDecl* counter = nullptr;
        if (!tested || !moved) continue;
        const auto step = step_of(moved, counter, op);
        if (!counter) continue;
        loop.counter = counter;
        loop.halving = loop.halving || is_geometric(op, step);
        loop.shared = loop.shared || is_shared(loop, step, op);
    }
    return loop;
}

Loop Body::describe(const Stmt* statement) const {
    if (const auto* f = dyn_cast<ForStmt>(statement)) {
        Loop loop = describe_for(*f);
        if (!loop.counter) loop = describe_while(*f, f->getCond());
        return loop;
    }
    if (const auto* w = dyn_cast<WhileStmt>(statement)) return describe_while(*w, w->getCond());
    if (const auto* d = dyn_cast<DoStmt>(statement)) return describe_while(*d, d->getCond());
    Loop loop{.stmt = statement};
    if (const auto* range = dyn_cast<CXXForRangeStmt>(statement); range && range->getRangeInit()) {
        const auto* array =
            context_.getAsConstantArrayType(range->getRangeInit()->IgnoreParenImpCasts()->getType());
        if (array) loop.trips = array->getSize().getLimitedValue();
    }
    return loop;
}

const Stmt* Body::loop_of_counter(const VarDecl* variable) const {
    for (const Stmt* loop : loops_)
        if (describe(loop).counter == variable) return loop;
    return nullptr;
}

}  // namespace mp::lint
