// The numerical meaning of a value: sums, means, variances and their inverse roots, recognised by the
// computation.

#include <algorithm>

#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/types.hpp"

namespace mp::lint {
namespace {

using namespace clang;

constexpr unsigned kDeepest = 20;

// A constant does not change the meaning of the other path: `float mean = 0; if (lane == 0) mean = ...`.
Meaning either(Meaning a, Meaning b) {
    if (a == Meaning::constant) return b;
    if (b == Meaning::constant || a == b) return a;
    return Meaning::none;
}

// The meaning of a sum over values with the meaning `part`.
Meaning gathered(Meaning part) {
    switch (part) {
        case Meaning::square:
            return Meaning::sum_of_squares;
        case Meaning::none:
        case Meaning::constant:
            return Meaning::sum;
        default:
            return part;
    }
}

bool is_spread(Meaning m) { return m == Meaning::sum_of_squares || m == Meaning::variance; }

}  // namespace

Meaning Flow::meaning(Term t) const { return meaning_at(t, 0); }

Meaning Flow::meaning_at(Term t, unsigned depth) const {
    if (!t || depth > kDeepest) return Meaning::none;
    t = terms.strip(t);
    const auto known = meanings.find({t.expr, t.frame});
    if (known != meanings.end()) return known->second;
    meanings[{t.expr, t.frame}] = Meaning::none;  // a value computed from itself has no meaning
    const Arith a = terms.arithmetic(t);
    Meaning found = Meaning::none;
    if (a.kind != Arithmetic::none)
        found = of_arithmetic(a, depth + 1);
    else if (can_evaluate(t.expr) && t.expr->isEvaluatable(context))
        found = Meaning::constant;
    else if (const auto* call = dyn_cast<CallExpr>(t.expr);
             call && call->getDirectCallee() && is_vector_of(*call->getDirectCallee()))
        found = of_vector(*call, t.frame, depth + 1);
    else
        found = of_variable(t, depth + 1);
    return meanings[{t.expr, t.frame}] = found;
}

Meaning Flow::of_arithmetic(const Arith& a, unsigned depth) const {
    switch (a.kind) {
        case Arithmetic::add:
            return total(a.args[0], a.args[1], depth);
        case Arithmetic::subtract:
            return difference(a.args[0], a.args[1], depth);
        case Arithmetic::multiply:
            return product(a.args[0], a.args[1], depth);
        case Arithmetic::divide:
            return quotient(a.args[0], a.args[1], depth);
        case Arithmetic::select:
            return either(meaning_at(a.args[0], depth), meaning_at(a.args[1], depth));
        case Arithmetic::shuffle:
            return meaning_at(a.args[0], depth);
        case Arithmetic::reduce:
            return gathered(meaning_at(a.args[0], depth));
        case Arithmetic::square:
            return Meaning::square;
        case Arithmetic::sqrt:
            return meaning_at(a.args[0], depth) == Meaning::variance ? Meaning::deviation : Meaning::none;
        case Arithmetic::rsqrt:
            return meaning_at(a.args[0], depth) == Meaning::variance ? Meaning::rstd : Meaning::none;
        case Arithmetic::max: {  // max(variance, 0) keeps its meaning
            const Meaning x = meaning_at(a.args[0], depth), y = meaning_at(a.args[1], depth);
            return x == Meaning::constant || y == Meaning::constant ? either(x, y) : Meaning::none;
        }
        case Arithmetic::fma: {  // E[x^2] - mean * mean, written as one operation
            const Meaning added = meaning_at(a.args[2], depth);
            const auto negated = [&](Term t) {
                return terms.arithmetic(terms.resolve(t)).kind == Arithmetic::negate;
            };
            return added == Meaning::variance && (negated(a.args[0]) || negated(a.args[1])) ? added
                                                                                            : Meaning::none;
        }
        default:
            return Meaning::none;
    }
}

// make_float2(v, v) has the meaning that all its parts have.
Meaning Flow::of_vector(const CallExpr& call, const Frame* frame, unsigned depth) const {
    Meaning common = Meaning::constant;
    for (const Expr* part : call.arguments()) common = either(common, meaning_at({part, frame}, depth));
    return common;
}

Meaning Flow::total(Term a, Term b, unsigned depth) const {
    const Meaning x = meaning_at(a, depth), y = meaning_at(b, depth);
    if (x == y &&
        (x == Meaning::sum || x == Meaning::sum_of_squares || x == Meaning::square || x == Meaning::constant))
        return x;
    // variance + eps
    if (is_spread(x) && (y == Meaning::none || y == Meaning::constant)) return x;
    if (is_spread(y) && (x == Meaning::none || x == Meaning::constant)) return y;
    return Meaning::none;
}

Meaning Flow::difference(Term a, Term b, unsigned depth) const {
    const Meaning x = meaning_at(a, depth);
    if (!is_spread(x)) return Meaning::none;
    llvm::SmallVector<Term, 4> parts;
    terms.factors(b, parts);
    const bool square = parts.size() == 2 && terms.same(parts[0], parts[1]);
    return square && x == Meaning::variance ? Meaning::variance : Meaning::none;
}

// The meaning of a total that is divided by a count.
static Meaning over_count(Meaning total) {
    switch (total) {
        case Meaning::sum:
        case Meaning::mean:
            return Meaning::mean;
        case Meaning::sum_of_squares:
        case Meaning::variance:
            return Meaning::variance;
        default:
            return Meaning::none;
    }
}

Meaning Flow::product(Term a, Term b, unsigned depth) const {
    if (terms.same(a, b) && !terms.number(a)) return Meaning::square;
    if (is_reciprocal_count(a)) std::swap(a, b);
    if (!is_reciprocal_count(b)) return Meaning::none;
    return over_count(meaning_at(a, depth));
}

Meaning Flow::quotient(Term a, Term b, unsigned depth) const {
    if (terms.number(a) == 1.0)
        return meaning_at(b, depth) == Meaning::deviation ? Meaning::rstd : Meaning::none;
    if (!is_count(b)) return Meaning::none;
    return over_count(meaning_at(a, depth));
}

// Whether the term is a count: an integer, or a constant with an integral value.
bool Flow::is_count(Term t) const {
    const Term resolved = terms.resolve(t);
    if (!resolved) return false;
    if (is_integer(terms.dtype(resolved))) return true;
    const auto value = terms.number(resolved);
    if (value)
        return *value >= 2 &&
               *value == static_cast<double>(static_cast<std::int64_t>(std::min(*value, 1e15)));
    const Arith a = terms.arithmetic(resolved);
    if (a.kind == Arithmetic::add)  // n + eps
        return (is_count(a.args[0]) && terms.number(a.args[1])) ||
               (is_count(a.args[1]) && terms.number(a.args[0]));
    return a.kind == Arithmetic::multiply && is_count(a.args[0]) && is_count(a.args[1]);
}

bool Flow::is_reciprocal_count(Term t) const {
    const auto value = terms.number(t);
    if (value) return *value > 0 && *value < 1;
    const Arith a = terms.arithmetic(terms.resolve(t));
    return a.kind == Arithmetic::divide && terms.number(a.args[0]) == 1.0 && is_count(a.args[1]);
}

// The meaning of a variable at a use: from the writes before the use, starting at the last one that always
// runs.
Meaning Flow::of_variable(Term use, unsigned depth) const {
    const Place place = terms.place(use);
    if (!place.base || place.through_pointer || place.frame != use.frame) return Meaning::none;
    const Body& body = terms.body_of(use.frame);
    const auto index = place.address.size() == 1 ? terms.number(place.address[0]) : std::nullopt;
    std::vector<const Write*> before;
    for (const Write* w : body.writes_to(place.base)) {
        if (body.order(w->site) > body.order(use.expr)) continue;
        if (w->kind != WriteKind::init && w->kind != WriteKind::escape && body.contains(w->site, use.expr))
            continue;
        if (w->kind == WriteKind::escape && body.contains(w->site, use.expr)) continue;
        if ((index || place.field) && w->target) {  // sums[0] is not sums[1], and s.x is not s.y
            const Place other = terms.place({w->target, use.frame});
            const auto at = other.address.size() == 1 ? terms.number(other.address[0]) : std::nullopt;
            if (index && at && *at != *index) continue;
            if (place.field && other.field && place.field != other.field) continue;
        }
        before.push_back(w);
    }
    Meaning now = Meaning::constant;  // nothing yet
    if (const auto* parameter = dyn_cast<ParmVarDecl>(place.base)) {
        now = Meaning::none;
        if (use.frame && parameter->getDeclContext() == use.frame->callee) {
            const unsigned shift =
                isa<CXXOperatorCallExpr>(use.frame->call) && isa<CXXMethodDecl>(use.frame->callee);
            const unsigned i = parameter->getFunctionScopeIndex() + shift;
            if (i < use.frame->call->getNumArgs())
                now = meaning_at({use.frame->call->getArg(i), use.frame->outer}, depth + 1);
        }
    } else if (before.empty()) {
        return Meaning::none;
    }
    for (const Write* w : before) now = after(now, *w, use, depth + 1);
    return now;
}

Meaning Flow::after(Meaning before, const Write& w, Term use, unsigned depth) const {
    const Body& body = terms.body_of(use.frame);
    if (w.kind == WriteKind::escape) {  // a helper that reduces in place: the result is a sum of the input
        const auto* call = dyn_cast<CallExpr>(w.site);
        const Frame* frame = call ? terms.enter(*call, use.frame) : nullptr;
        return frame && shuffles(*frame->body, 0) ? before : Meaning::none;
    }
    Step step = step_of(w, use.frame, w.site, nullptr);
    step.at = use.frame;
    if (const auto found = w.target ? accumulate(step) : std::nullopt) {
        if (found->op == AccumulateOp::max || found->op == AccumulateOp::min) return before;
        const bool gathers = found->tree || !gathering_loops(step).empty();
        if (gathers) return of_gathered(before, *found, depth);
        Meaning now = before;
        for (const Summand& s : found->added) {
            const Meaning added = of_summand(s, depth);
            if (is_spread(now) && (added == Meaning::none || added == Meaning::constant)) continue;
            now = now == Meaning::constant || now == added ? added : Meaning::none;
        }
        return now;
    }
    const bool scales = w.kind == WriteKind::multiply ? is_reciprocal_count({w.value, use.frame})
                        : w.kind == WriteKind::divide ? is_count({w.value, use.frame})
                                                      : false;
    if (scales && (before == Meaning::sum || before == Meaning::mean)) return Meaning::mean;
    if (scales && is_spread(before)) return Meaning::variance;
    if (w.kind != WriteKind::assign && w.kind != WriteKind::init) return Meaning::none;
    const FieldDecl* field = terms.place(use).field;
    const Term part = field && w.whole ? terms.part_of({w.value, use.frame}, *field) : Term{};
    const Meaning value = meaning_at(part ? part : Term{w.value, use.frame}, depth);
    // A branch that also contains the use has run whenever the use runs.
    const Stmt* branch = w.site;
    while (branch && !body.contains(branch, use.expr)) branch = body.parent(branch);
    return body.always_runs(w.site, branch) ? value : either(before, value);
}

Meaning Flow::of_gathered(Meaning before, const Accumulate& found, unsigned depth) const {
    if (found.tree) return gathered(before);
    return adds_squares(found, depth) ? Meaning::sum_of_squares : Meaning::sum;
}

// A square times something else, as fma(square, weight, total) adds, is no square.
Meaning Flow::of_summand(const Summand& s, unsigned depth) const {
    if (terms.is_square(s)) return Meaning::square;
    return s.is_factor ? Meaning::none : meaning_at(s.term, depth);
}

bool Flow::adds_squares(const Accumulate& found, unsigned depth) const {
    return !found.added.empty() && std::ranges::all_of(found.added, [&](const Summand& s) {
        const Meaning m = of_summand(s, depth);
        return m == Meaning::square || m == Meaning::sum_of_squares;
    });
}

bool Flow::shuffles(const Body& body, unsigned depth) const {
    return std::ranges::any_of(body.calls(), [&](const Expr* e) {
        const auto* call = cast<CallExpr>(e);
        const FunctionDecl* callee = call->getDirectCallee();
        if (callee && library_call(*callee, *call).kind == Arithmetic::shuffle) return true;
        const Frame* frame = depth < 2 ? terms.enter(*call, nullptr) : nullptr;
        return frame && shuffles(*frame->body, depth + 1);
    });
}

}  // namespace mp::lint
