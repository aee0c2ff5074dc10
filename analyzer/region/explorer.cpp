#include <algorithm>

#include "analyzer/region/calls.hpp"
#include "analyzer/region/effects.hpp"

namespace mp::lint {
namespace {

bool is_true(const Operand& o) { return o.constant.str() == "true" || o.constant.str() == "1"; }
bool is_false(const Operand& o) { return o.constant.str() == "false" || o.constant.str() == "0"; }

bool branches(const Block& b) { return b.to.size() + (b.leaves ? 1 : 0) > 1; }

Symbol guard_class(const Call& call) { return Symbol(class_of(call.name.str())); }

}  // namespace

Explorer::Explorer(const Effects& effects, std::uint32_t function)
    : effects_(effects), index_(function), f_(effects.graph().function(function)) {
    block_calls_.resize(block_count());
    for (std::size_t c = 0; c < f_.calls.size(); ++c)
        if (f_.calls[c].block < block_count()) block_calls_[f_.calls[c].block].push_back(c);
    seen_.resize(block_count());
    out_.calls.resize(f_.calls.size());
    find_tracked();
}

bool Explorer::same_branch(const Edge& a, const Edge& b) const {
    return !a.condition.empty() && a.condition == b.condition && a.when == b.when;
}

// Whether every wanted block can be reached when no edge with the condition of `without` is taken.
bool Explorer::reaches_all(const std::vector<char>& wanted, const Edge* without) const {
    std::vector<char> reached(block_count(), 0);
    std::vector<std::uint32_t> pending{0};
    reached[0] = 1;
    while (!pending.empty()) {
        const Block& block = f_.flow[pending.back()];
        pending.pop_back();
        for (const Edge& e : block.to) {
            if (e.to >= reached.size() || reached[e.to] || same_branch(e, *without)) continue;
            reached[e.to] = 1;
            pending.push_back(e.to);
        }
    }
    for (std::size_t b = 0; b < wanted.size(); ++b)
        if (wanted[b] && !reached[b]) return false;
    return true;
}

// Tracks only the conditions that decide whether the state is touched. Tracking every condition of
// a long function would multiply its states without use.
void Explorer::find_tracked() {
    std::size_t edges = 0;
    for (const Block& b : f_.flow) {
        first_edge_.push_back(static_cast<std::uint32_t>(edges));
        edges += b.to.size();
    }
    tracked_.assign(edges, 0);
    if (f_.flow.empty()) return;
    std::vector<char> touching(block_count(), 0);
    for (std::size_t c = 0; c < f_.calls.size(); ++c) {
        // A `with` block undoes its own effect, so a path around it ends in the same state.
        if (is_enter(f_.calls[c]) || is_exit(f_.calls[c])) continue;
        const ApiKind kind = effects_.api().classify(f_, f_.calls[c]).kind;
        const bool reads = kind == ApiKind::read_enabled || kind == ApiKind::read_dtype;
        if (reads && is_python(f_)) continue;
        if (f_.calls[c].block < touching.size() && effects_.touches(index_, c))
            touching[f_.calls[c].block] = 1;
    }

    struct Known {
        const Edge* edge = nullptr;
        bool matters = false;
    };
    std::unordered_map<std::uint64_t, Known> known;
    std::vector<Symbol> matter;
    add_with_conditions(matter);
    const bool any = std::ranges::find(touching, 1) != touching.end();
    for (const Block& b : f_.flow) {
        for (const Edge& e : b.to) {
            if (!any || e.condition.empty() || !branches(b)) continue;
            const std::uint64_t key = std::uint64_t{e.condition.id()} << 1 | (e.when ? 1 : 0);
            const auto [entry, is_new] = known.try_emplace(key);
            if (!is_new) continue;
            // Each distinct branch costs a walk over the function.
            if (known.size() > kMaxStates) {
                if (!is_python(f_)) return overflow();
                break;  // conditions that are not tracked are taken both ways
            }
            if (!reaches_all(touching, &e)) matter.push_back(e.condition);
        }
    }
    std::size_t at = 0;
    for (const Block& b : f_.flow)
        for (const Edge& e : b.to)
            tracked_[at++] = branches(b) && std::ranges::find(matter, e.condition) != matter.end();
}

Exploration Explorer::run() {
    if (!out_.overflow) enter(0, State{});
    while (!pending_.empty() && !out_.overflow) {
        auto [block, state] = std::move(pending_.back());
        pending_.pop_back();
        run_block(block, std::move(state));
    }
    out_.saved_returned = returns_saved_ && !out_.exits.empty();
    return std::move(out_);
}

void Explorer::overflow() {
    out_.overflow = true;
    CallState nothing;
    for (Cell& cell : nothing.cells) cell.value = Value::unknown, cell.sure = false;
    out_.states.assign(1, nothing);
    for (auto& states : out_.calls) states.assign(1, 0);
    out_.exits.assign(1, {nothing.cells, {}, {}});
    out_.closed.clear();
    out_.constant_closes.clear();
    returns_saved_ = false;
}

void Explorer::enter(std::uint32_t block, State state) {
    auto& seen = seen_[block];
    if (std::ranges::find(seen, state) != seen.end()) return;
    if (!seen.empty() && ++states_ > kMaxStates + 4 * block_count()) return overflow();
    seen.push_back(state);
    pending_.emplace_back(block, std::move(state));
}

void Explorer::drop_equal(std::vector<State>& states) {
    std::vector<State> kept;
    for (State& state : states)
        if (std::ranges::find(kept, state) == kept.end()) kept.push_back(std::move(state));
    states = std::move(kept);
}

void Explorer::run_block(std::uint32_t block, State first) {
    std::vector<State> states, next;
    states.push_back(std::move(first));
    for (const std::size_t call : block_calls_[block]) {
        next.clear();
        for (State& state : states) {
            record(call, state);
            step(call, std::move(state), next);
        }
        if (is_exit(f_.calls[call])) drop_equal(next);
        std::swap(states, next);
        if (states.size() > kMaxStates) return overflow();
    }
    for (const State& state : states) {
        leave(block, state);
        if (out_.overflow) return;
    }
}

void Explorer::leave(std::uint32_t block, const State& state) {
    if (f_.flow.empty()) return exit(state, {});
    const Block& from = f_.flow[block];
    if (from.leaves) {
        // If there is one edge, leaving means that the edge is not taken.
        State after = state;
        const bool decided = from.to.size() == 1 && tracked_[first_edge_[block]];
        if (!decided || assume(after, {from.to[0].condition, !from.to[0].when})) exit(after, from.span);
    }
    for (std::size_t i = 0; i < from.to.size() && !out_.overflow; ++i) {
        const Edge& e = from.to[i];
        if (e.to >= block_count()) continue;
        State after = state;
        if (e.raises) unwind(e.to, after);
        if (tracked_[first_edge_[block] + i] && !assume(after, {e.condition, e.when})) continue;
        enter(e.to, std::move(after));
    }
}

void Explorer::exit(const State& left, const SourceSpan& span) {
    State state = left;
    // Only __enter__ may leave a `with` block open.
    if (is_python(f_) && leaf(f_.name.str()) != "__enter__") unwind(kNowhere, state);
    out_.exits.push_back({state.cells, state.assumed, span});
    const auto is_entry_state = [](const Cell& cell) {
        return cell.value == Value::entry && cell.dtype_entry;
    };
    for (const Operand& o : f_.returned) {
        const Saved* saved = o.call == kNone ? nullptr : saved_by(o.call, state);
        returns_saved_ = returns_saved_ && saved && saved->guard.empty() &&
                         std::ranges::all_of(saved->cells, is_entry_state);
    }
    returns_saved_ = returns_saved_ && !f_.returned.empty();
}

void Explorer::record(std::size_t call, const State& state) {
    const auto same = [&](const CallState& known) {
        return known.cells == state.cells && known.assumed == state.assumed;
    };
    // Search from the end: the previous call usually ran in the same state.
    auto found = std::find_if(out_.states.rbegin(), out_.states.rend(), same);
    std::uint32_t index = static_cast<std::uint32_t>(out_.states.rend() - found);
    if (found == out_.states.rend()) {
        index = static_cast<std::uint32_t>(out_.states.size()) + 1;
        out_.states.push_back({state.cells, state.assumed});
    }
    auto& indices = out_.calls[call];
    if (std::ranges::find(indices, index - 1) == indices.end()) indices.push_back(index - 1);
}

// False when the path already took the other branch of an equal condition.
bool Explorer::assume(State& state, Assumption assumption) {
    for (const Assumption& known : state.assumed)
        if (known.condition == assumption.condition) return known.when == assumption.when;
    state.assumed.push_back(assumption);
    std::ranges::sort(state.assumed, {}, [](const Assumption& a) { return a.condition.id(); });
    return true;
}

const Explorer::Saved* Explorer::saved_by(std::int32_t call, const State& state) const {
    for (const Saved& saved : state.saved)
        if (saved.call == call) return &saved;
    return nullptr;
}

void Explorer::save(State& state, Saved saved) const {
    std::erase_if(state.saved, [&](const Saved& old) { return old.call == saved.call; });
    state.saved.push_back(std::move(saved));
}

void Explorer::step(std::size_t call, State state, std::vector<State>& out) {
    const Call& c = f_.calls[call];
    const ApiCall api = effects_.api().classify(f_, c);
    if (api.kind == ApiKind::enter_python) return step_with(call, *api.manager, std::move(state), out);
    if (is_exit(c)) {
        step_out_of_with(call, state);
        out.push_back(std::move(state));
        return;
    }
    if (is_enter(c) && !enter_when(call, state, out)) return;
    if (api.kind == ApiKind::guard || api.kind == ApiKind::exclude || api.kind == ApiKind::no_grad) {
        step_guard(call, api, state);
        out.push_back(std::move(state));
        return;
    }
    if (api.kind != ApiKind::none) {
        step_api(call, api, state);
        out.push_back(std::move(state));
        return;
    }
    std::vector<const Target*> touching;
    bool other = false;  // the call may also run a body that changes nothing
    for (const Target& target : effects_.graph().targets(index_, call)) {
        if (target.spawned) continue;
        const bool touches = !effects_.summary(target.function).changes_nothing();
        if (touches) touching.push_back(&target);
        if (!touches || target.lambda) other = true;
    }
    const bool alone = touching.size() == 1 && !other;
    for (const Target* target : touching) step_body(call, *target, alone, state, out);
    if (touching.empty() || other) {
        bool saves = false;
        for (const Target& target : effects_.graph().targets(index_, call))
            saves = saves || effects_.summary(target.function).returns_before;
        if (saves) save(state, {static_cast<std::int32_t>(call), {}, state.cells});
        out.push_back(std::move(state));
    }
}

void Explorer::step_api(std::size_t call, const ApiCall& api, State& state) {
    const Call& c = f_.calls[call];
    const Operand none;
    const Operand& value = api.value < c.args.size() ? c.args[api.value] : none;
    Cell& cell = state.cells[api.device];
    switch (api.kind) {
        case ApiKind::read_enabled:
        case ApiKind::read_dtype:
            save(state, {static_cast<std::int32_t>(call), {}, state.cells});
            break;
        case ApiKind::set_enabled:
            set_enabled(call, api.device, opposite_if(api.negated, setting_of(value, api.device, state)),
                        true, state);
            break;
        case ApiKind::set_dtype: {
            const Saved* saved = value.call == kNone ? nullptr : saved_by(value.call, state);
            const ClassFacts* facts = effects_.class_facts(f_.parent_class);
            cell.dtype_restore = false;
            if (saved) {
                cell.dtype = saved->cells[api.device].dtype;
                cell.dtype_entry = saved->cells[api.device].dtype_entry;
            } else {
                cell.dtype = dtype_of_constant(value);
                cell.dtype_restore = cell.dtype == DType::unknown && facts && facts->reads_enabled;
                cell.dtype_entry = cell.dtype_restore;
            }
            break;
        }
        case ApiKind::enter:
            set_enabled(call, kUnknownDevice, {.value = Value::on}, true, state);
            state.cells[kUnknownDevice].dtype = effects_.api().configured_dtype();
            state.cells[kUnknownDevice].dtype_entry = false;
            break;
        case ApiKind::leave:
            // The configuration names the function, but not how it closes: assume that it restores
            // the state before.
            set_enabled(call, kUnknownDevice, {.value = Value::entry}, true, state);
            state.cells[kUnknownDevice] = {};
            break;
        default:
            break;
    }
}

void Explorer::step_guard(std::size_t call, const ApiCall& api, State& state) {
    const Symbol guard = guard_class(f_.calls[call]);
    if (!api.ends) {
        save(state, {static_cast<std::int32_t>(call), guard, state.cells});
        if (api.kind == ApiKind::exclude) {
            state.cells[api.device].value = Value::off;
            return;
        }
        if (api.kind == ApiKind::no_grad) {
            state.cells[kNoGrad] = {.value = Value::on};
            return;
        }
        set_enabled(call, kUnknownDevice, {.value = Value::on}, true, state);
        state.cells[kUnknownDevice].dtype = effects_.api().configured_dtype();
        state.cells[kUnknownDevice].dtype_entry = false;
        return;
    }
    const auto last = std::find_if(state.saved.rbegin(), state.saved.rend(),
                                   [&](const Saved& s) { return s.guard == guard; });
    if (last == state.saved.rend()) return;
    for (const Cell& cell : state.cells)
        if (cell.origin != kNone && cell.origin == last->call) out_.closed.push_back(cell.origin);
    // Only the gradient mode is restored: a region opened in the scope stays open.
    if (api.kind == ApiKind::no_grad)
        state.cells[kNoGrad] = last->cells[kNoGrad];
    else
        state.cells = last->cells;
    state.saved.erase(std::next(last).base());
}

Explorer::Setting Explorer::opposite_if(bool negated, Setting setting) {
    if (!negated || setting.saved) return setting;
    switch (setting.value) {
        case Value::on:
            return {.value = Value::off};
        case Value::off:
            return {.value = Value::on};
        default:
            return {.value = Value::unknown};
    }
}

Explorer::Setting Explorer::setting_of(const Operand& operand, Device device, const State& state) const {
    if (is_true(operand)) return {.value = Value::on};
    if (is_false(operand)) return {.value = Value::off};
    if (operand.call != kNone)
        if (const Saved* saved = saved_by(operand.call, state))
            return {.value = Value::restore, .param = kNone, .saved = &saved->cells[device]};
    if (operand.param != kNone) return {.value = Value::param, .param = operand.param};
    // A member of an object that read the state earlier holds the saved state.
    const ClassFacts* facts = effects_.class_facts(f_.parent_class);
    if (facts && facts->reads_enabled && operand.constant.empty() && !operand.name.empty())
        return {.value = Value::restore};
    return {.value = Value::unknown};
}

void Explorer::set_enabled(std::size_t call, Device device, Setting setting, bool sure, State& state) {
    Cell& cell = state.cells[device];
    const bool was_opened_here = cell.origin != kNone;
    if (setting.value == Value::on) {
        if (!was_opened_here) {
            cell.before = cell.value;
            cell.origin = static_cast<std::int32_t>(call);
        }
        cell.value = Value::on;
        cell.sure = cell.sure && sure;
        return;
    }
    if (was_opened_here) {
        out_.closed.push_back(cell.origin);
        const ConstantClose close{cell.origin, static_cast<std::uint32_t>(call), device, cell.before};
        if (setting.value == Value::off && cell.value == Value::on &&
            std::ranges::find(out_.constant_closes, close) == out_.constant_closes.end())
            out_.constant_closes.push_back(close);
    }
    const bool dtype_entry = cell.dtype_entry;
    const DType dtype = cell.dtype;
    if (setting.saved) {
        cell = *setting.saved;
    } else {
        cell = {};
        cell.value = setting.value;
        cell.param = setting.param;
        cell.sure = sure && setting.value != Value::unknown && setting.value != Value::param;
    }
    // `enabled` and the dtype are set separately.
    cell.dtype_entry = dtype_entry;
    cell.dtype = dtype;
}

// Translates a condition of the callee to this call: a constant argument decides it, or it becomes
// the caller's text for the same value.
Explorer::Fit Explorer::fit(const Call& call, const Target& target, Assumption& assumption) const {
    const Function& callee = effects_.graph().function(target.function);
    for (std::size_t p = 0; p < callee.params.size(); ++p) {
        if (callee.params[p].name != assumption.condition || target.lambda) continue;
        const Operand* argument = argument_for(call, callee, static_cast<std::int32_t>(p));
        if (!argument) return Fit::open;
        if (is_true(*argument)) return assumption.when ? Fit::always : Fit::never;
        if (is_false(*argument)) return assumption.when ? Fit::never : Fit::always;
        assumption.condition = argument->text.empty() ? argument->name : argument->text;
        return assumption.condition.empty() ? Fit::open : Fit::when;
    }
    return Fit::when;
}

// Whether this exit of the callee fits the arguments and the path. Adds the exit's assumptions to
// the path.
bool Explorer::select(std::size_t call, const Target& target, const Exit& exit, State& state,
                      bool& sure) const {
    for (Assumption when : exit.when) {
        const Fit fits = fit(f_.calls[call], target, when);
        if (fits == Fit::never || (fits == Fit::when && !assume(state, when))) return false;
        if (fits == Fit::open) sure = false;
    }
    return true;
}

void Explorer::apply(std::size_t call, const Function& callee, const Cell& effect, Device device, bool sure,
                     State& state, const Saved* guard) {
    Cell& cell = state.cells[device];
    if (effect.dtype_restore && guard) {
        cell.dtype = guard->cells[device].dtype;
        cell.dtype_entry = guard->cells[device].dtype_entry;
    } else if (!effect.dtype_entry) {
        cell.dtype = effect.dtype;
        cell.dtype_entry = false;
    }
    if (effect.value == Value::entry) return;
    Setting setting{.value = effect.value};
    if (effect.value == Value::param) {
        const Operand* argument = argument_for(f_.calls[call], callee, effect.param);
        setting = argument ? setting_of(*argument, device, state) : Setting{};
        sure = true;
    } else if (effect.value == Value::restore && guard) {
        setting.saved = &guard->cells[device];
    } else if (effect.value == Value::restore && cell.origin != kNone) {
        setting.value = cell.before;
    } else if (effect.value == Value::restore && callee.parent_class != f_.parent_class) {
        return;  // an earlier call ended the region of this object
    }
    set_enabled(call, device, setting, sure && (effect.sure || effect.value == Value::param), state);
}

void Explorer::step_body(std::size_t call, const Target& target, bool alone, const State& state,
                         std::vector<State>& out) {
    const Function& callee = effects_.graph().function(target.function);
    const Summary& summary = effects_.summary(target.function);
    const ClassFacts* facts = effects_.class_facts(callee.parent_class);
    const CallKind kind = f_.calls[call].kind;
    const bool makes_guard = kind == CallKind::constructor && facts && facts->destructor_closes;
    const auto last = std::find_if(state.saved.rbegin(), state.saved.rend(), [&](const Saved& s) {
        return !s.guard.empty() && s.guard == callee.parent_class;
    });
    const Saved* guard = makes_guard || last == state.saved.rend() ? nullptr : &*last;
    const auto ends = [](const Exit& exit) {
        return std::ranges::any_of(exit.cells, [](const Cell& cell) {
            return cell.value == Value::restore || cell.value == Value::off;
        });
    };
    // A destructor that closes under a condition of its own object is trusted.
    const bool trusted = guard && kind == CallKind::destructor && std::ranges::any_of(summary.exits, ends);

    bool sure = alone;
    std::vector<std::pair<const Exit*, State>> taken;
    for (const Exit& exit : summary.exits) {
        State after = state;
        if (trusted ? ends(exit) : select(call, target, exit, after, sure))
            taken.emplace_back(&exit, std::move(after));
    }
    for (auto& [exit, after] : taken) {
        const Saved saved{static_cast<std::int32_t>(call), makes_guard ? callee.parent_class : Symbol{},
                          after.cells};
        // If several exits fit and no condition distinguishes them, each is only possible, not
        // sure.
        const bool known = sure && (taken.size() == 1 || !exit->when.empty());
        for (std::size_t d = 0; d < kDevices; ++d)
            apply(call, callee, exit->cells[d], static_cast<Device>(d), known, after, guard);
        if (makes_guard || summary.returns_before) save(after, saved);
        if (guard && ends(*exit))
            std::erase_if(after.saved, [&](const Saved& s) { return s.call == guard->call; });
        out.push_back(std::move(after));
    }
}

}  // namespace mp::lint
