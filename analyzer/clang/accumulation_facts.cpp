// Accumulations as facts: selects the steps of a body that accumulate, and describes them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analyzer/clang/decl_names.hpp"
#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/types.hpp"

namespace mp::lint {
namespace {

using namespace clang;

bool is_extreme(AccumulateOp op) { return op == AccumulateOp::max || op == AccumulateOp::min; }

SourceSpan span_at(SourceLocation where, const ASTContext& context) {
    return span_of(SourceRange(where), context);
}

// The frame of the helper that the root calls directly.
const Frame* outermost(const Frame* frame) {
    while (frame && frame->outer) frame = frame->outer;
    return frame;
}

bool reads_low_precision(const Expr& value) {
    bool found = false;
    for_each_expr(&value, [&](const Expr& e) {
        if (!found && isa<DeclRefExpr, CallExpr>(e))
            found = is_low_precision(element_type(e.getType()).dtype);
    });
    return found;
}

// The statement list or branch that contains the statement. The unrolled steps of one tree share it.
const Stmt* block_of(const Body& body, const Stmt* s) {
    while (s && !isa<CompoundStmt>(s)) s = body.parent(s);
    return s;
}

}  // namespace

// A number or a packed pair of numbers. Moving a pointer is not an accumulation.
bool Flow::is_low_precision_value(Term t) const {
    const ElementType type = element_type(t.expr->getType());
    return is_low_precision(type.dtype) && (type.shape == Shape::scalar || type.shape == Shape::vec);
}

// A helper with a loop around its addition has an accumulation fact of its own.
bool Flow::reported_by_helper(const Step& step) const {
    for (const Frame* f = step.frame; f; f = f->outer) {
        Step inside = step;
        inside.site = f == step.frame ? step.write->site : nullptr;
        inside.at = f;
        if (inside.site && !gathering_loops(inside).empty()) return true;
    }
    return false;
}

// this->sum += x in a method that is called repeatedly. Operators and constructors are excluded, because
// they make new values.
bool Flow::is_member_sum(const Step& step) const {
    const auto* method = dyn_cast<CXXMethodDecl>(&terms.root().function());
    return method && !isa<CXXConstructorDecl>(method) && !method->isOverloadedOperator() && !step.frame &&
           step.place.of_this && !step.place.through_pointer && step.place.address.empty();
}

// left *= 1 - a. A power of a number above 1 grows instead.
bool Flow::is_running_product(const Step& step) const {
    if (!step.value) return false;
    llvm::SmallVector<Term, 4> factors;
    terms.factors(terms.resolve(step.value), factors);
    const auto grows = [&](Term factor) { return std::abs(terms.number(factor).value_or(0)) > 1; };
    const auto is_itself = [&](Term factor) { return terms.same(factor, step.target); };
    if (std::ranges::any_of(factors, grows)) return false;
    return step.write->kind == WriteKind::multiply ||
           (step.write->kind == WriteKind::assign && factors.size() > 1 &&
            std::ranges::any_of(factors, is_itself));
}

// A blend, as of the colours along a ray: what a term weighs is what the terms before it left over, so that all
// weights together are one at most.
bool Flow::is_blend(const Accumulate& found, const Stmt* loop) const {
    const auto is_left_over = [&](Term factor) {
        return std::ranges::any_of(steps, [&](const Step& other) {
            return terms.root().contains(loop, other.site) && terms.same(factor, other.target) &&
                   is_running_product(other);
        });
    };
    const auto is_weighted = [&](const Summand& s) { return std::ranges::any_of(s.factors, is_left_over); };
    return !found.added.empty() && std::ranges::all_of(found.added, is_weighted);
}

Stat Flow::stat_of(const Step& step, const Accumulate& found, const std::vector<const Stmt*>& loops) const {
    if (!found.tree && !loops.empty() && is_blend(found, loops.front())) return Stat::mean;
    const Meaning held = found.tree ? meaning(step.target) : Meaning::none;
    const bool squares =
        found.tree ? held == Meaning::square || held == Meaning::sum_of_squares : adds_squares(found, 0);
    return squares ? Stat::sum_of_squares : Stat::sum;
}

// Whether each round of the loops adds: no branch around the step, no way out of a loop, and nothing else that changes
// the variable.
bool Flow::is_certain(const Step& step, const std::vector<const Stmt*>& loops) const {
    if (loops.empty()) return true;
    const Body& body = terms.body_of(step.at);
    if (!body.always_runs(step.site, loops.back())) return false;
    if (step.frame && !terms.body_of(step.frame).always_runs(step.write->site, nullptr)) return false;
    if (std::ranges::any_of(loops, [&](const Stmt* loop) { return body.ends_early(loop); })) return false;
    return std::ranges::all_of(body.writes_to(step.place.base), [&](const Write* w) {
        return !body.contains(loops.back(), w->site) || adders().contains(w) || adders().contains(w->site);
    });
}

const std::set<const void*>& Flow::adders() const {
    if (adders_) return *adders_;
    adders_.emplace();
    for (const Step& step : steps) {
        if (!accumulate(step)) continue;
        adders_->insert(step.write);
        if (step.call) adders_->insert(step.call);
    }
    return *adders_;
}

Accumulation Flow::describe(const Step& step, const Accumulate& found,
                            const std::vector<const Stmt*>& loops) const {
    Accumulation a;
    const Body& root = terms.root();
    a.span = span_of(step.site->getSourceRange(), context);
    if (step.place.base) a.declared = span_at(step.place.base->getLocation(), context);
    a.name = step.frame && step.place.base ? Symbol(step.place.base->getNameAsString())
                                           : spelling(*step.write->target, context);
    a.dtype = terms.dtype(step.target);
    a.shape = element_type(step.target.expr->getType()).shape;
    a.element = found.added.empty() ? a.dtype : terms.dtype(terms.strip(found.added.front().term));
    a.op = found.op;
    a.form = found.tree                                            ? AccumulateForm::tree
             : step.frame && !isa<CXXOperatorCallExpr>(step.call)  ? AccumulateForm::call
             : step.frame || step.write->kind != WriteKind::assign ? AccumulateForm::compound
                                                                   : AccumulateForm::assign;
    a.storage = storage_of(step.place);
    a.stat = is_extreme(found.op) ? Stat::none : stat_of(step, found, loops);
    a.loop_depth = static_cast<std::uint16_t>(loops.size());
    std::uint64_t counted = loops.empty() ? 0 : 1;
    std::size_t unknown = 0, shared = 0;
    for (const Stmt* statement : loops) {
        const Loop loop = root.describe(statement);
        unknown += loop.trips == 0 ? 1 : 0;
        shared += loop.trips == 0 && loop.shared ? 1 : 0;
        if (loop.trips != 0 && __builtin_mul_overflow(counted, loop.trips, &counted))
            counted = std::numeric_limits<std::uint64_t>::max();
    }
    if (unknown == 0) a.trips = counted;
    // In a tree the other threads add where this one does not.
    if (found.tree || is_certain(step, loops)) a.at_least = counted;
    a.shared = unknown > 0 && shared == unknown;
    const Term sum = step.write->kind == WriteKind::assign ? terms.strip(step.value) : Term{};
    const Frame* helper = step.frame ? step.frame : sum.frame;
    if (!helper) return a;
    a.through = Symbol(qualified_name(*outermost(helper)->callee));
    a.through_span =
        span_of(step.frame ? step.write->site->getSourceRange() : sum.expr->getSourceRange(), context);
    return a;
}

// A float sum of squares that were computed in low precision: acc += __half2float(__hmul(x, x)).
std::optional<Accumulation> Flow::squared_before(const Step& step) const {
    if (step.frame || !step.value || terms.dtype(step.target) != DType::fp32) return std::nullopt;
    if (!reads_low_precision(*step.write->value) || terms.root().loops_around(step.site).empty())
        return std::nullopt;
    const auto found = accumulate(step);
    if (!found || is_extreme(found->op) || found->tree || found->added.empty()) return std::nullopt;
    const bool low = std::ranges::all_of(found->added, [&](const Summand& s) {
        return terms.is_square(s) && is_low_precision(terms.dtype(terms.strip(s.term)));
    });
    const auto loops = low ? gathering_loops(step) : std::vector<const Stmt*>{};
    if (loops.empty()) return std::nullopt;
    return describe(step, *found, loops);
}

void Flow::add_accumulations(Function& out) const {
    const Body& root = terms.root();
    std::set<std::pair<const ValueDecl*, const Stmt*>> unrolled;  // unrolled trees
    std::map<std::pair<const ValueDecl*, const Stmt*>, std::size_t> fact_of;
    const std::vector<const Step*> written_out = written_out_trees();
    for (const Step& step : steps) {
        if (!step.place.base) continue;
        if (!is_low_precision_value(step.target)) {
            if (auto squares = squared_before(step)) out.accumulations.push_back(*squares);
            continue;
        }
        if (step.frame && reported_by_helper(step)) continue;
        auto found = accumulate(step);
        if (!found) continue;
        const bool branches = std::ranges::find(written_out, &step) != written_out.end();
        found->tree = found->tree || branches;
        // A butterfly: signs change between its steps (see is_tree_step).
        const bool swaps = !found->tree && std::ranges::any_of(found->added, [&](const Summand& s) {
            return is_shuffle_of(s.term, step.target);
        });
        if (swaps) continue;
        const auto loops = gathering_loops(step);
        const bool dead = std::ranges::any_of(root.loops_around(step.site),
                                              [&](const Stmt* loop) { return root.describe(loop).never; });
        if (dead) continue;
        const bool member = loops.empty() && is_member_sum(step);
        if (loops.empty() && !member && !found->tree) continue;
        if (member && is_extreme(found->op)) continue;
        if (loops.empty() && found->tree) {
            const std::pair key{step.place.base, branches ? nullptr : block_of(root, step.site)};
            if (!unrolled.insert(key).second) {
                Accumulation& tree = out.accumulations[fact_of[key]];
                tree.at_least = ++tree.trips;
                continue;
            }
            fact_of[key] = out.accumulations.size();
        }
        Accumulation a = describe(step, *found, loops);
        if (loops.empty() && found->tree) a.trips = a.at_least = 1;
        if (member) a.form = AccumulateForm::member;
        out.accumulations.push_back(a);
    }
}

}  // namespace mp::lint
