#include "analyzer/analyses/protocol_paths.hpp"

#include <algorithm>
namespace mp::lint {
namespace {

using enum EventKind;

// Events that make a function worth analysing as a root.
constexpr EventMask kCore =
    mask_of(scale) | mask_of(unscale) | mask_of(scaler_step) | mask_of(update) | mask_of(optimizer_step);

template <typename List, typename Value>
void add_once(List& list, Value value) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(std::move(value));
}

}  // namespace

Paths::Paths(const Program& program, const Roles& roles, Scalers scalers)
    : program_(program), roles_(roles), scalers_(std::move(scalers)) {
    find_masks();
    find_overriders();
    for (const Function* f : program_.functions())
        if ((mask(*f) & kCore) && !only_forwards(*f)) run_root(*f);
}

void Paths::run_root(const Function& f) {
    root_ = &f;
    runs_ = work_ = 0;
    known_.clear();
    Frame frame{&f, &body(f), Bindings(f.params.size()), 0};
    run(frame, {});
    most_work_ = std::max(most_work_, work_);
}

Paths::States Paths::run(Frame& frame, PathState entry) {
    const Function& f = *frame.function;
    States exits;
    if (++runs_ > kMaxRuns) return {std::move(entry)};
    stack_.push_back(&f);
    std::vector<std::array<States, 2>> seen(frame.body->blocks.size());
    std::vector<Visit> pending;
    pending.push_back({0, false, std::move(entry)});
    const std::size_t most = std::min(kMaxStates + kStatesOfBlock * seen.size(), kMostStates);
    std::size_t states = 0;
    while (!pending.empty() && ++states <= most && work_ < kMaxWork) {
        Visit visit = std::move(pending.back());
        pending.pop_back();
        States& known = seen[visit.block][visit.again ? 1 : 0];
        if (std::ranges::find(known, visit.state) != known.end()) continue;
        known.push_back(visit.state);
        ++work_;
        for (const PathState& after : run_block(frame, visit.block, std::move(visit.state)))
            leave(frame, visit, after, pending, exits);
    }
    stack_.pop_back();
    return exits;
}

Paths::States Paths::run_block(Frame& frame, std::uint32_t block, PathState first) {
    States states, next;
    states.push_back(std::move(first));
    for (const Item& item : frame.body->blocks[block]) {
        next.clear();
        for (PathState& state : states) {
            if (item.callee && item.mask) {
                for (PathState& after : call(frame, block, item, state)) add_once(next, std::move(after));
                continue;
            }
            step(frame, block, item, state);
            add_once(next, std::move(state));
        }
        std::swap(states, next);
        if (states.size() > kMaxStates) states.resize(kMaxStates);
    }
    return states;
}

void Paths::leave(Frame& frame, const Visit& visit, const PathState& state, std::vector<Visit>& next,
                  States& exits) {
    const Function& f = *frame.function;
    const std::uint32_t block = visit.block;
    if (f.flow.empty()) return add_once(exits, state);
    const Block& from = f.flow[block];
    std::vector<Way> ways(from.to.size(), Way::never);
    std::vector<PathState> after(from.to.size(), state);
    for (std::size_t i = 0; i < from.to.size(); ++i) {
        const Edge& e = from.to[i];
        if (e.raises || e.to >= frame.body->blocks.size()) continue;
        const bool tracked = std::ranges::find(frame.body->tracked, e.condition) != frame.body->tracked.end();
        ways[i] = assume(frame, e, tracked, after[i]);
    }
    // With one edge beside it, leaving is the other branch of that edge's condition.
    bool leaves = from.leaves;
    if (leaves && from.to.size() == 1 && !from.to[0].condition.empty()) {
        PathState other = state;
        Edge opposite = from.to[0];
        opposite.when = !opposite.when;
        leaves = assume(frame, opposite, false, other) == Way::open;
    }
    if (!visit.again && enters_loop(frame, block, ways)) leaves = false;
    for (std::size_t i = 0; i < from.to.size(); ++i) {
        if (ways[i] != Way::open) continue;
        branch(frame, block, i, ways, leaves, after[i]);
        const std::uint32_t to = from.to[i].to;
        const bool again = frame.body->flow.is_in_loop(block, to);
        next.push_back({to, again, std::move(after[i])});
    }
    if (leaves) add_once(exits, state);
}

void Paths::add_assumed(PathState& state, const Assumed& added) {
    const auto at = std::ranges::lower_bound(state.assumed, added.condition.id(), {},
                                             [](const Assumed& a) { return a.condition.id(); });
    if (at == state.assumed.end() || at->condition != added.condition) state.assumed.insert(at, added);
}

// A loop runs at least once: a path around it proves nothing, because nobody trains without batches, and no
// list of optimizers is empty.
bool Paths::enters_loop(const Frame& frame, std::uint32_t block, std::vector<Way>& ways) {
    const ControlFlow& flow = frame.body->flow;
    if (!flow.is_in_loop(block, block)) return false;
    const auto& to = frame.function->flow[block].to;
    const auto stays = [&](std::size_t i) { return flow.is_in_loop(to[i].to, block); };
    bool enters = false;
    for (std::size_t i = 0; i < ways.size(); ++i) enters |= ways[i] == Way::open && stays(i);
    for (std::size_t i = 0; i < ways.size() && enters; ++i)
        if (!stays(i)) ways[i] = Way::never;
    return enters;
}

// unscale_ under a flag that never changes, the step under something that does (the number of the batch):
// where the flag is set, both happen, each by its own rule.
bool Paths::is_independent(const Frame& frame, Duty duty, std::uint32_t opener, std::uint32_t block) {
    const auto& flow = frame.function->flow;
    const auto is_flag = [](const Edge& e) { return e.raises || !e.condition.empty(); };
    if (duty != Duty::finish || opener >= flow.size() || std::ranges::any_of(flow[block].to, is_flag))
        return false;
    std::uint32_t guard = frame.body->flow.dominator(opener);
    for (; guard < flow.size() && !dominates(*frame.body, guard, block);
         guard = frame.body->flow.dominator(guard))
        if (flow[guard].to.size() > 1 && !std::ranges::all_of(flow[guard].to, is_flag)) return false;
    return guard < flow.size() && std::ranges::all_of(flow[guard].to, is_flag);
}

bool Paths::is_under(const Frame& frame, std::uint32_t opener, Symbol condition) {
    const auto& flow = frame.function->flow;
    for (std::uint32_t b = opener; b < flow.size() && b != 0;) {
        const std::uint32_t guard = frame.body->flow.dominator(b);
        if (guard >= flow.size() || guard == b) return false;
        for (const Edge& e : flow[guard].to)
            if (e.condition == condition && dominates(*frame.body, e.to, opener)) return true;
        b = guard;
    }
    return false;
}

// Updates the open obligations of a path that takes this edge and not another.
void Paths::branch(const Frame& frame, std::uint32_t block, std::size_t taken, const std::vector<Way>& ways,
                   bool leaves, PathState& state) const {
    const auto& to = frame.function->flow[block].to;
    // A condition under which the opener stands was decided before it, and is no choice any more.
    const auto others = [&](const Obligation& duty, const std::vector<char>& reach, char value) {
        for (std::size_t i = 0; i < to.size(); ++i)
            if (i != taken && ways[i] != Way::never && reach[to[i].to] == value)
                if (ways[i] == Way::open || !is_under(frame, duty.block, to[i].condition)) return true;
        return false;
    };
    for (ScalerState& scaler : state.scalers) {
        for (std::size_t d = 0; d < kDuties; ++d) {
            Obligation& duty = scaler.duties[d];
            if (!duty.active || duty.doubt) continue;
            const auto& settles = frame.body->settles[d];
            const auto& claims = frame.body->claims[d];
            if (!settles[to[taken].to] && others(duty, settles, 1)) {
                const bool may_be_twin = !dominates(*frame.body, duty.block, block) &&
                                         !is_independent(frame, static_cast<Duty>(d), duty.block, block);
                if (duty.skipped || may_be_twin) duty.doubt = true;
                duty.skipped = true;
                duty.by_setting |= !to[taken].condition.empty();
            } else if (duty.skipped && claims[to[taken].to] && (leaves || others(duty, claims, 0))) {
                // The claim is guarded too, perhaps by the twin of the condition before.
                duty.doubt = true;
            }
        }
    }
}

// The states after a call whose body is known.
Paths::States Paths::call(Frame& frame, std::uint32_t block, const Item& item, const PathState& before) {
    const Function& callee = *item.callee;
    const Call& site = frame.function->calls[static_cast<std::size_t>(item.call)];
    const bool recursive = std::ranges::find(stack_, &callee) != stack_.end();
    if (recursive || frame.depth >= kMaxDepth || runs_ >= kMaxRuns) return {before};
    PathState entry = before;
    enter_callee(frame, block, entry);
    Frame inner{&callee, &body(callee), bind(frame, site, callee), frame.depth + 1};
    auto& known = known_[&callee];
    auto found = std::ranges::find_if(
        known, [&](const Known& k) { return k.bindings == inner.bindings && k.entry == entry; });
    if (found == known.end()) {
        Bindings bindings = inner.bindings;
        States exits = run(inner, entry);
        known.push_back({std::move(bindings), std::move(entry), std::move(exits)});
        found = std::prev(known.end());
    }
    States after = found->exits;
    for (PathState& state : after) leave_callee(inner, block, before, state);
    return after;
}

void Paths::enter_callee(const Frame& frame, std::uint32_t block, PathState& entry) const {
    const auto seen_inside = [&](std::uint32_t opener) {
        return dominates(*frame.body, opener, block) ? Obligation::kOutside : Obligation::kSomewhere;
    };
    for (ScalerState& s : entry.scalers) {
        for (Obligation& o : s.duties) o.block = seen_inside(o.block);
        for (ScaledLoss& p : s.pending) p.block = seen_inside(p.block);
    }
}

void Paths::leave_callee(const Frame& inner, std::uint32_t block, const PathState& before,
                         PathState& after) const {
    const auto seen_outside = [&](std::uint32_t opener) {
        const bool always = opener == Obligation::kOutside || inner.body->flow.is_on_every_way(opener);
        return always ? block : Obligation::kSomewhere;
    };
    for (ScalerState& s : after.scalers) {
        const auto old = std::ranges::find(before.scalers, s.key, &ScalerState::key);
        const bool known = old != before.scalers.end();
        for (std::size_t d = 0; d < kDuties; ++d) {
            Obligation& o = s.duties[d];
            const bool same = known && old->duties[d].active && old->duties[d].opened == o.opened;
            o.block = same ? old->duties[d].block : seen_outside(o.block);
        }
        for (ScaledLoss& p : s.pending) {
            const auto same = [&](const ScaledLoss& q) { return q.site == p.site && q.name == p.name; };
            const auto kept = known ? std::ranges::find_if(old->pending, same) : s.pending.end();
            const bool is_old = known && kept != old->pending.end();
            p.block = is_old ? kept->block : seen_outside(p.block);
        }
    }
    std::erase_if(after.assumed, [&](const Assumed& a) { return a.of == inner.function; });
}

}  // namespace mp::lint
