// Accumulators: storage to which a loop, a tree reduction or repeated calls add.

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "analyzer/clang/local_flow_impl.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/Attr.h"
#include "clang/AST/StmtCXX.h"

namespace mp::lint {

using namespace clang;

// exp(x), __expf(x), hexp(x), exp2f(x)
static bool is_exponential(Term t) {
    const auto* call = t ? dyn_cast<CallExpr>(t.expr) : nullptr;
    const FunctionDecl* callee = call ? call->getDirectCallee() : nullptr;
    return callee && callee->getIdentifier() && callee->getName().contains("exp");
}

Step Flow::step_of(const Write& write, const Frame* frame, const Stmt* site, const CallExpr* call) const {
    Step step;
    step.site = site, step.write = &write, step.frame = frame, step.call = call;
    step.target = {write.target, frame};
    step.value = {write.value, frame};
    step.place = terms.place(step.target);
    return step;
}

void Flow::collect_steps() {
    const Body& root = terms.root();
    for (const Write& write : root.writes()) {
        if (write.kind == WriteKind::escape || write.kind == WriteKind::init || !write.target) continue;
        if (const auto* op = dyn_cast<CXXOperatorCallExpr>(write.site))  // a class's own operator+=
            if (!is_low_precision(terms.dtype({write.target, nullptr})) && terms.enter(*op, nullptr))
                continue;
        steps.push_back(step_of(write, nullptr, write.site, nullptr));
    }
    for (const Expr* e : root.calls()) {
        const auto& call = *cast<CallExpr>(e);
        collect_helper_steps(call, call, nullptr);
        collect_library_store(call);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i].position = {root.order(steps[i].site), i};
    std::ranges::sort(steps, {}, &Step::position);
}

void Flow::collect_library_store(const CallExpr& call) {
    const FunctionDecl* callee = call.getDirectCallee();
    const auto store = callee ? library_store(*callee, call) : std::nullopt;
    if (!store) return;
    Write& write = library_writes.emplace_back();
    write.site = &call, write.kind = WriteKind::assign;
    write.target = call.getArg(store->target)->IgnoreParenImpCasts();
    write.value = call.getArg(store->source)->IgnoreParenImpCasts();
    Step step = step_of(write, nullptr, &call, nullptr);
    step.place = terms.pointee(step.target);
    step.position = {terms.root().order(&call), steps.size()};
    library_stores.push_back(std::move(step));
}

// Collects the changes that a call makes to storage of the root: through a pointer, a reference, an object
// or a capture.
void Flow::collect_helper_steps(const CallExpr& call, const CallExpr& root_call, const Frame* outer) {
    const FunctionDecl* callee = call.getDirectCallee();
    if (!callee) return;
    const auto* method = dyn_cast<CXXMethodDecl>(callee);
    bool reaches = method && !method->isStatic();
    for (const ParmVarDecl* p : callee->parameters())
        reaches = reaches || p->getType()->isPointerType() || p->getType()->isReferenceType();
    const Frame* frame = reaches ? terms.enter(call, outer) : nullptr;
    if (!frame) return;
    for (const Write& write : frame->body->writes()) {
        if (write.kind == WriteKind::escape || write.kind == WriteKind::init || !write.target) continue;
        Step step = step_of(write, frame, &root_call, &root_call);
        if (!step.place.base || step.place.frame) continue;  // the helper's own variable
        if (step.place.of_this && !step.place.through_pointer &&
            !terms.root().function().isCXXInstanceMember())
            continue;
        steps.push_back(std::move(step));
    }
    for (const Expr* inner : frame->body->calls())
        collect_helper_steps(*cast<CallExpr>(inner), root_call, frame);
}

// Whether the term is the place's own value in another lane.
bool Flow::is_shuffle_of(Term t, Term place) const {
    const Term resolved = terms.resolve(t);
    const auto own = [&](Term e) {
        const Arith a = terms.arithmetic(e);
        return a.kind == Arithmetic::shuffle &&
               (terms.same(a.args[0], place) || terms.same(terms.resolve(a.args[0]), place));
    };
    if (own(resolved)) return true;
    const auto* call = resolved ? dyn_cast<CallExpr>(resolved.expr) : nullptr;
    const Frame* frame = call ? terms.enter(*call, resolved.frame) : nullptr;
    if (!frame) return false;
    // A wrapper with one branch per architecture returns a shuffle in each branch.
    const auto& returned = frame->body->returned();
    return !returned.empty() && std::ranges::all_of(returned, [&](const Expr* e) { return own({e, frame}); });
}

// `if (v > m) m = v;` and `m = v > m ? v : m;`
std::optional<AccumulateOp> Flow::extreme(const Step& step) const {
    const Arith a = terms.arithmetic(step.value);
    const auto is_place = [&](Term t) { return terms.same(t, step.target); };
    if (a.kind == Arithmetic::max || a.kind == Arithmetic::min) {
        if (!is_place(a.args[0]) && !is_place(a.args[1])) return std::nullopt;
        return a.kind == Arithmetic::max ? AccumulateOp::max : AccumulateOp::min;
    }
    const Body& body = terms.body_of(step.frame);
    const Expr* test = nullptr;
    if (a.kind == Arithmetic::select) {
        const auto* choice = dyn_cast<ConditionalOperator>(terms.strip(step.value).expr);
        if (choice && (is_place(a.args[0]) || is_place(a.args[1]))) test = choice->getCond();
    } else {
        const Stmt* up = body.parent(step.write->site);
        while (up && isa<CompoundStmt, ExprWithCleanups>(up)) up = body.parent(up);
        if (const auto* branch = dyn_cast_or_null<IfStmt>(up)) test = branch->getCond();
    }
    const auto compared = test ? terms.comparison({test, step.frame}) : std::nullopt;
    if (!compared) return std::nullopt;
    bool is_max = is_place(compared->less);
    if (is_max == is_place(compared->more)) return std::nullopt;
    if (a.kind == Arithmetic::select && is_place(a.args[0])) is_max = !is_max;
    return is_max ? AccumulateOp::max : AccumulateOp::min;
}

// `v += shuffle(v)`, or `s[t] += s[t + stride]` with a stride that halves or doubles.
bool Flow::is_tree_step(const Step& step, const std::vector<Summand>& added) const {
    const Body& body = terms.body_of(step.at);
    const auto loops = body.loops_around(step.site);
    const bool halving = !loops.empty() && body.describe(loops.front()).halving;
    // A butterfly, such as a Hadamard transform, changes signs between its steps: not a sum.
    const bool rewritten = !loops.empty() && std::ranges::any_of(steps, [&](const Step& other) {
        const bool changes =
            other.write->kind == WriteKind::other || other.write->kind == WriteKind::multiply;
        return changes && other.place.base == step.place.base && other.place.frame == step.place.frame &&
               body.contains(loops.front(), other.site);
    });
    if (rewritten) return false;
    for (const Summand& s : added) {
        if (is_shuffle_of(s.term, step.target)) return true;
        if (!step.place.element || !halving) continue;
        const Place from = terms.place(terms.resolve(s.term));
        if (from.base && from.base == step.place.base && from.frame == step.place.frame &&
            !from.address.empty())
            return true;
    }
    return false;
}

// The constant c of `v += s[t + c]`, where s is an array of the function or of its caller; 0: none.
std::uint64_t Flow::fixed_stride(const Step& step, const ValueDecl*& from) const {
    const auto found = accumulate(step);
    if (!found || found->tree || found->added.size() != 1) return 0;
    const Place read = terms.place(terms.resolve(found->added.front().term));
    if (!read.base || read.frame || read.address.empty()) return 0;
    from = read.base;
    const Arith index = terms.arithmetic(terms.resolve(read.address.front()));
    if (index.kind != Arithmetic::add) return 0;
    const auto a = terms.number(index.args[0]), b = terms.number(index.args[1]);
    const double stride = a ? *a : b.value_or(0);
    return stride >= 1 && stride <= 4096 ? static_cast<std::uint64_t>(stride) : 0;
}

std::vector<const Step*> Flow::written_out_trees() const {
    struct Tree {
        std::set<std::uint64_t> strides;
        std::vector<const Step*> steps;
    };
    std::map<std::pair<const ValueDecl*, const ValueDecl*>, Tree> trees;
    for (const Step& step : steps) {
        if (step.frame || !step.place.base || !is_low_precision_value(step.target)) continue;
        const ValueDecl* from = nullptr;
        const std::uint64_t stride = fixed_stride(step, from);
        if (stride == 0) continue;
        Tree& tree = trees[{step.place.base, from}];
        tree.strides.insert(stride);
        tree.steps.push_back(&step);
    }
    std::vector<const Step*> out;
    for (const auto& [key, tree] : trees) {
        const bool halves = std::ranges::any_of(tree.strides, [&](std::uint64_t s) {
            return tree.strides.contains(2 * s) && tree.strides.contains(4 * s);
        });
        // Terms in a row, s[t + 1], s[t + 2], s[t + 3], are no tree.
        const bool powers = std::ranges::all_of(tree.strides, [](auto s) { return std::has_single_bit(s); });
        if (halves && powers) out.insert(out.end(), tree.steps.begin(), tree.steps.end());
    }
    return out;
}

// `v`, or `v * exp(old_max - new_max)`, the running sum of a softmax.
bool Flow::keeps_old(const Summand& s, Term place) const {
    const auto is_place = [&](Term t) { return terms.same(t, place) || terms.same(terms.resolve(t), place); };
    if (s.negative) return false;
    if (s.factors.empty()) return is_place(s.term);
    return std::ranges::count_if(s.factors, is_place) == 1 && std::ranges::all_of(s.factors, [&](Term f) {
               return is_place(f) || is_exponential(terms.resolve(f));
           });
}

// float v = half_sum; v += x; half_sum = v: the summands of `v`, which each round of the loop makes anew.
std::vector<Summand> Flow::summands_through_locals(Term value, const std::vector<const Stmt*>& loops) const {
    std::vector<Summand> out;
    for (const Summand& s : terms.summands(value)) {
        const Term t = terms.resolve(s.term);
        const auto* ref = t && s.factors.empty() && !s.negative ? dyn_cast<DeclRefExpr>(t.expr) : nullptr;
        const auto* variable = ref ? dyn_cast<VarDecl>(ref->getDecl()) : nullptr;
        const Body& body = terms.body_of(t.frame);
        const Stmt* declared = variable ? body.declared_at(variable) : nullptr;
        const bool is_made_anew = declared && !loops.empty() && body.contains(loops.front(), declared) &&
                                  std::ranges::all_of(body.writes_to(variable), [](const Write* w) {
                                      return w->value && w->kind <= WriteKind::add;
                                  });
        if (!is_made_anew) {
            const bool is_sum = t && s.factors.empty() && !s.negative && t.expr != s.term.expr;
            const std::vector<Summand> opened = is_sum ? terms.summands(t) : std::vector<Summand>{s};
            out.insert(out.end(), opened.begin(), opened.end());
            continue;
        }
        for (const Write* w : body.writes_to(variable)) {
            const std::vector<Summand> opened = terms.summands({w->value, t.frame});
            out.insert(out.end(), opened.begin(), opened.end());
        }
    }
    return out;
}

std::optional<Accumulate> Flow::accumulate(const Step& step) const {
    if (!step.value) return std::nullopt;
    Accumulate found;
    if (step.write->kind == WriteKind::add || step.write->kind == WriteKind::subtract) {
        found.op = step.write->kind == WriteKind::add ? AccumulateOp::add : AccumulateOp::subtract;
        found.added = terms.summands(step.value);
        found.tree = is_tree_step(step, found.added);
        return found;
    }
    if (step.write->kind != WriteKind::assign) return std::nullopt;
    if (const auto op = extreme(step)) {
        found.op = *op;
        return found;
    }
    found.added = terms.summands(step.value);
    const auto is_old = [&](const Summand& s) { return keeps_old(s, step.target); };
    auto self = std::ranges::find_if(found.added, is_old);
    if (self == found.added.end() && is_low_precision_value(step.target)) {
        found.added = summands_through_locals(step.value, terms.body_of(step.at).loops_around(step.site));
        self = std::ranges::find_if(found.added, is_old);
    }
    if (self == found.added.end()) return std::nullopt;
    found.added.erase(self);
    if (found.added.empty()) return std::nullopt;
    const bool all_negative = std::ranges::all_of(found.added, &Summand::negative);
    const bool fused = terms.arithmetic(terms.resolve(step.value)).kind == Arithmetic::fma;
    found.op = all_negative ? AccumulateOp::subtract : fused ? AccumulateOp::fma : AccumulateOp::add;
    found.tree = is_tree_step(step, found.added);
    return found;
}

// Whether the storage is passed to a call that may overwrite it: load(registers, memory). A helper that is
// known to add to it, or not to write it, does not count.
bool Flow::refills(const Step& step, const Write& w) const {
    const auto* call = dyn_cast<CallExpr>(w.site);
    if (w.kind != WriteKind::escape || step.at || !call || call == step.site) return false;
    const Body& root = terms.root();
    if (root.contains(call, step.site) || root.contains(step.site, call)) return false;
    if (!terms.enter(*call, nullptr)) return true;
    return std::ranges::any_of(steps, [&](const Step& other) {
        return other.call == call && other.place.base == step.place.base && !accumulate(other);
    });
}

// Whether every iteration of the loop assigns to the place a value that does not depend on the old value.
bool Flow::restarts(const Step& step, const Stmt* loop) const {
    const Body& body = terms.body_of(step.at);
    const auto mentions_itself = [&](const Write& w) {
        bool found = false;
        for_each_expr(w.value, [&](const Expr& e) {
            const auto* ref = dyn_cast<DeclRefExpr>(&e);
            const auto* member = dyn_cast<MemberExpr>(&e);
            found = found || (ref && ref->getDecl() == step.place.base) ||
                    (member && member->getMemberDecl() == step.place.base);
        });
        return found;
    };
    const auto runs_first = [&](const Write& w) {
        const Stmt* branch = w.site;  // a branch that also contains the step runs whenever the step runs
        while (branch && branch != loop && !body.contains(branch, step.site)) branch = body.parent(branch);
        return body.always_runs(w.site, branch);
    };
    for (const Write* w : body.writes_to(step.place.base)) {
        if (w == step.write || !body.contains(loop, w->site)) continue;
        const bool assigned = w->kind == WriteKind::assign && w->value && !mentions_itself(*w);
        if ((assigned || refills(step, *w)) && runs_first(*w)) return true;
    }
    // A pointer into it: tile = &shared[64]; load(tile, x); tile[i] += y.
    const VarDecl* pointer = step.at ? nullptr : terms.array_of(step.target);
    if (!pointer || pointer == step.place.base) return false;
    return std::ranges::any_of(body.writes_to(pointer), [&](const Write* w) {
        return body.contains(loop, w->site) && refills(step, *w) && runs_first(*w);
    });
}

std::vector<const Stmt*> Flow::gathering_loops(const Step& step) const {
    const Body& root = terms.body_of(step.at);
    std::vector<const Stmt*> gathering;
    const Stmt* declared = step.place.base ? root.declared_at(step.place.base) : nullptr;
    const auto* variable = dyn_cast_or_null<VarDecl>(step.place.base);
    if (variable && variable->isStaticLocal()) declared = nullptr;
    for (const Stmt* loop : root.loops_around(step.site)) {
        if (declared && !step.place.through_pointer && root.contains(loop, declared)) break;
        if (restarts(step, loop)) break;
        const bool elsewhere =
            std::ranges::any_of(step.place.address, [&](Term t) { return terms.varies(t, loop, step.at); });
        if (!elsewhere) gathering.push_back(loop);
    }
    return gathering;
}

Storage Flow::storage_of(const Place& place) const {
    if (place.of_this) return Storage::member;
    const auto* variable = dyn_cast_or_null<VarDecl>(place.base);
    if (!variable) return Storage::global;
    if (variable->hasAttr<CUDASharedAttr>()) return Storage::shared;
    if (place.through_pointer || variable->hasGlobalStorage()) return Storage::global;
    if (isa<ParmVarDecl>(variable)) return Storage::parameter;
    return variable->getType()->isArrayType() ? Storage::array : Storage::local;
}

}  // namespace mp::lint
