#include "analyzer/analyses/protocol_paths.hpp"

#include <algorithm>

#include "analyzer/analyses/arguments.hpp"

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

// The first name of "self.scaler" and "net->scaler".
std::string_view head_of(std::string_view key) {
    return key.substr(0, std::min(key.find('.'), key.find("->")));
}

std::size_t parameter_named(const Function& f, std::string_view name) {
    const auto at = std::ranges::find_if(f.params, [&](const Parameter& p) { return p.name.str() == name; });
    return static_cast<std::size_t>(at - f.params.begin());
}

bool assigns(const Function& f, std::string_view name) {
    return std::ranges::any_of(f.calls, [&](const Call& c) { return c.result.name.str() == name; });
}

bool is_nested(const Function& f) {
    return f.kind == FunctionKind::lambda || f.name.str().find("operator()") != std::string_view::npos;
}

}  // namespace

Paths::Paths(const Program& program, const Roles& roles, EnabledOf enabled)
    : program_(program), roles_(roles), enabled_(std::move(enabled)) {
    find_masks();
    for (const Function* f : program_.functions())
        if (mask(*f) & kCore) run_root(*f);
}

void Paths::run_root(const Function& f) {
    root_ = &f;
    runs_ = 0;
    known_.clear();
    Frame frame{&f, &body(f), Bindings(f.params.size()), 0};
    run(frame, {});
}

Paths::States Paths::run(Frame& frame, PathState entry) {
    const Function& f = *frame.function;
    States exits;
    if (++runs_ > kMaxRuns) return {std::move(entry)};
    stack_.push_back(&f);
    std::vector<States> seen(frame.body->blocks.size());
    std::vector<std::pair<std::uint32_t, PathState>> pending{{0, std::move(entry)}};
    const std::size_t most = std::min(kMaxStates + kStatesOfBlock * seen.size(), kMostStates);
    std::size_t states = 0;
    while (!pending.empty() && ++states <= most) {
        auto [block, state] = std::move(pending.back());
        pending.pop_back();
        if (std::ranges::find(seen[block], state) != seen[block].end()) continue;
        seen[block].push_back(state);
        for (const PathState& after : run_block(frame, block, std::move(state)))
            leave(frame, block, after, pending, exits);
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

void Paths::leave(Frame& frame, std::uint32_t block, const PathState& state,
                  std::vector<std::pair<std::uint32_t, PathState>>& next, States& exits) {
    const Function& f = *frame.function;
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
    for (std::size_t i = 0; i < from.to.size(); ++i) {
        if (ways[i] != Way::open) continue;
        branch(frame, block, i, ways, leaves, after[i]);
        next.emplace_back(from.to[i].to, std::move(after[i]));
    }
    if (leaves) add_once(exits, state);
}

// Updates the open obligations of a path that takes this edge and not another.
void Paths::branch(const Frame& frame, std::uint32_t block, std::size_t taken, const std::vector<Way>& ways,
                   bool leaves, PathState& state) const {
    const auto& to = frame.function->flow[block].to;
    const auto others = [&](const std::vector<char>& reach, char value) {
        for (std::size_t i = 0; i < to.size(); ++i)
            if (i != taken && ways[i] != Way::never && reach[to[i].to] == value) return true;
        return false;
    };
    for (ScalerState& scaler : state.scalers) {
        for (std::size_t d = 0; d < kDuties; ++d) {
            Obligation& duty = scaler.duties[d];
            if (!duty.active || duty.doubt) continue;
            const auto& settles = frame.body->settles[d];
            const auto& claims = frame.body->claims[d];
            if (!settles[to[taken].to] && others(settles, 1)) {
                if (duty.skipped || !dominates(*frame.body, duty.block, block)) duty.doubt = true;
                duty.skipped = true;
            } else if (duty.skipped && claims[to[taken].to] && (leaves || others(claims, 0))) {
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
    for (ScalerState& s : entry.scalers)
        for (Obligation& o : s.duties) o.block = Obligation::kOutside;
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
    for (PathState& state : after) {
        for (ScalerState& s : state.scalers) {
            const auto old = std::ranges::find(before.scalers, s.key, &ScalerState::key);
            for (std::size_t d = 0; d < kDuties; ++d) {
                Obligation& o = s.duties[d];
                const bool same =
                    old != before.scalers.end() && old->duties[d].active && old->duties[d].opened == o.opened;
                o.block = same ? old->duties[d].block : block;
            }
        }
    }
    return after;
}

Paths::Bindings Paths::bind(const Frame& frame, const Call& call, const Function& callee) const {
    Bindings bound(callee.params.size());
    const bool python = callee.kind == FunctionKind::python;
    // A C++ receiver is not a parameter; a Python constructor's object is not an argument.
    std::size_t arg = !python && call.kind == CallKind::method ? 1 : 0;
    std::size_t param = python && call.kind == CallKind::constructor ? 1 : 0;
    for (; arg < call.args.size(); ++arg) {
        const Operand& a = call.args[arg];
        const std::string_view keyword = a.keyword.str();
        if (keyword == "*" || keyword == "**") break;
        const std::size_t at = keyword.empty() ? param++ : parameter_named(callee, keyword);
        if (at < bound.size()) bound[at] = {canonical(frame, key_of(a)), a.constant};
    }
    return bound;
}

Symbol Paths::canonical(const Frame& frame, Symbol key) const {
    if (key.empty() || frame.depth == 0) return key;
    const Function& f = *frame.function;
    const std::string_view text = key.str();
    const std::string_view head = head_of(text);
    const std::size_t param = parameter_named(f, head);
    if (param < f.params.size()) {
        const Symbol bound = frame.bindings[param].key;
        if (!bound.empty()) return Symbol(std::string(bound.str()) += text.substr(head.size()));
    } else if (is_nested(f) || !assigns(f, head)) {
        return key;  // captured, or of the module
    }
    return Symbol(std::string(f.usr.str()) + "|" + std::string(text));
}

Symbol Paths::condition(const Frame& frame, Symbol text, int& decided) const {
    if (text.empty() || frame.depth == 0 || is_nested(*frame.function)) return text;
    const Function& f = *frame.function;
    std::string_view subject = text.str();
    const std::string_view is_none = " is None";
    const bool about_none = subject.ends_with(is_none);
    if (about_none) subject.remove_suffix(is_none.size());
    const std::size_t param = parameter_named(f, subject);
    if (param < f.params.size()) {
        const Binding& b = frame.bindings[param];
        const std::string_view constant = b.constant.str();
        if (about_none && !constant.empty()) decided = constant == "None";
        if (!about_none && constant == "true") decided = 1;
        if (!about_none && (constant == "false" || constant == "None")) decided = 0;
        if (!b.key.empty())
            return Symbol(std::string(b.key.str()) + (about_none ? std::string(is_none) : ""));
    }
    const bool of_self = subject.starts_with("self.") || subject.starts_with("this->");
    if (of_self && (f.params.empty() || frame.bindings[0].key.str() == "self")) return text;
    return Symbol(std::string(f.usr.str()) + "|" + std::string(text.str()));
}

Paths::Way Paths::assume(const Frame& frame, const Edge& edge, bool tracked, PathState& state) const {
    if (edge.condition.empty()) return Way::open;
    int decided = -1;
    const Symbol text = condition(frame, edge.condition, decided);
    if (decided >= 0) return (decided == 1) == edge.when ? Way::open : Way::never;
    for (const Assumed& known : state.assumed)
        if (known.condition == text) return known.when == edge.when ? Way::open : Way::not_taken;
    if (!tracked) return Way::open;
    state.assumed.push_back({text, edge.when});
    std::ranges::sort(state.assumed, {}, [](const Assumed& a) { return a.condition.id(); });
    return Way::open;
}

}  // namespace mp::lint
