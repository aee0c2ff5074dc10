// The part of Explorer for Python's `with`: an __exit__ undoes the effect of the __enter__ it
// names.

#include <algorithm>

#include "analyzer/region/calls.hpp"
#include "analyzer/region/effects.hpp"

namespace mp::lint {
namespace {

Symbol with_mark() {
    static const Symbol mark("with");
    return mark;
}

bool is_autocast(Device d) { return d < kHmp; }

void close(Cell& cell, std::int32_t call) {
    cell.value = Value::off;
    cell.sure = true;
    cell.origin = call;
}

void apply_entry(Cells& cells, const PythonEntry& entry, bool opens, std::int32_t call) {
    Cell& cell = cells[entry.device];
    if (opens) {
        cell.value = entry.known ? Value::on : Value::unknown;
        cell.sure = entry.sure && entry.known;
        cell.origin = call;
        if (entry.dtype == DType::unknown) return;
        cell.dtype = entry.dtype;
        cell.dtype_entry = false;
        return;
    }
    close(cell, call);
    if (!is_autocast(entry.device)) return;
    // An unknown device may be the one that is open. Closing a known device therefore also closes
    // the unknown one, and closing the unknown device closes all.
    close(cells[kUnknownDevice], call);
    if (entry.device != kUnknownDevice) return;
    for (Device d = 1; d < kHmp; ++d) close(cells[d], call);
}

}  // namespace

// Adds the conditions of `with` blocks to the conditions tracked at branches.
void Explorer::add_with_conditions(std::vector<Symbol>& matter) const {
    for (const Call& call : f_.calls) {
        if (!is_enter(call)) continue;
        const ApiCall api = effects_.api().classify(f_, call);
        const PythonManager none;
        const PythonEntry entry = python_entry(api.manager ? *api.manager : none, call);
        for (const Symbol condition : {entry.flag, entry.when})
            if (!condition.empty()) matter.push_back(condition);
    }
}

// Appends the path that does not enter the block to `out`. False when no other path is left.
bool Explorer::enter_when(std::size_t call, State& state, std::vector<State>& out) {
    const PythonManager none;
    const PythonEntry entry = python_entry(none, f_.calls[call]);
    Saved saved{static_cast<std::int32_t>(call), with_mark(), state.cells, entry.when};
    if (!entry.when.empty()) {
        State around = state;
        if (assume(around, {entry.when, !entry.when_value})) {
            save(around, saved);
            out.push_back(std::move(around));
        }
        if (!assume(state, {entry.when, entry.when_value})) return false;
    }
    save(state, std::move(saved));
    return true;
}

void Explorer::step_with(std::size_t call, const PythonManager& manager, State state,
                         std::vector<State>& out) {
    if (!enter_when(call, state, out)) return;
    const PythonEntry entry = python_entry(manager, f_.calls[call]);
    const auto index = static_cast<std::int32_t>(call);
    if (entry.opens && !entry.flag.empty()) {
        for (Saved& saved : state.saved)
            if (saved.call == index && saved.assumed.empty()) saved.assumed = entry.flag;
        State closed = state;
        if (assume(closed, {entry.flag, !entry.flag_value})) {
            apply_entry(closed.cells, entry, false, index);
            out.push_back(std::move(closed));
        }
        if (!assume(state, {entry.flag, entry.flag_value})) return;
    }
    apply_entry(state.cells, entry, entry.opens, index);
    out.push_back(std::move(state));
}

void Explorer::step_out_of_with(std::size_t call, State& state) {
    const auto& args = f_.calls[call].args;
    const Saved* saved = args.empty() || args[0].call == kNone ? nullptr : saved_by(args[0].call, state);
    if (!saved || saved->guard != with_mark()) return;
    const Symbol assumed = saved->assumed;
    const std::int32_t entered = saved->call;
    state.cells = saved->cells;
    std::erase_if(state.saved, [&](const Saved& s) { return s.call == entered; });
    // Merges paths that only this block's condition told apart, so that many blocks do not multiply
    // the paths.
    if (assumed.empty() || branches_on(assumed)) return;
    std::erase_if(state.assumed, [&](const Assumption& a) { return a.condition == assumed; });
}

// An exception leaves the `with` blocks that do not contain its handler.
void Explorer::unwind(std::uint32_t block, State& state) {
    for (std::size_t i = 0; i < state.saved.size(); ++i) {
        const Saved& saved = state.saved[i];
        if (saved.guard != with_mark() || is_inside(saved.call, block)) continue;
        state.cells = saved.cells;
        state.saved.erase(state.saved.begin() + static_cast<std::ptrdiff_t>(i), state.saved.end());
        return;
    }
}

// Whether the block is inside the `with` that this call enters: its __exit__ is still to come.
bool Explorer::is_inside(std::int32_t entered, std::uint32_t block) {
    if (block >= block_count() || f_.flow.empty()) return false;
    const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(entered)} << 32 | block;
    const auto [entry, is_new] = inside_.try_emplace(key, false);
    if (!is_new) return entry->second;
    const std::uint32_t begin = f_.calls[static_cast<std::size_t>(entered)].block;
    std::vector<char> reached(block_count(), 0);
    std::vector<std::uint32_t> pending{block};
    reached[block] = 1;
    if (begin < reached.size()) reached[begin] = 1;  // do not pass through the `with` again
    while (!pending.empty()) {
        const std::uint32_t at = pending.back();
        pending.pop_back();
        for (const std::size_t c : block_calls_[at]) {
            const Call& call = f_.calls[c];
            if (is_exit(call) && !call.args.empty() && call.args[0].call == entered)
                return inside_[key] = true;
        }
        for (const Edge& e : f_.flow[at].to) {
            if (e.to >= reached.size() || reached[e.to]) continue;
            reached[e.to] = 1;
            pending.push_back(e.to);
        }
    }
    return false;
}

bool Explorer::branches_on(Symbol condition) const {
    return std::ranges::any_of(f_.flow, [&](const Block& block) {
        return std::ranges::any_of(block.to, [&](const Edge& e) { return e.condition == condition; });
    });
}

}  // namespace mp::lint
