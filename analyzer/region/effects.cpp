#include "analyzer/region/effects.hpp"

#include <algorithm>

namespace mp::lint {
namespace {

// Cycles of functions reach a fixed point in a few rounds, because states only accumulate. The
// limits stop hostile input.
constexpr int kMaxRounds = 8;
constexpr std::size_t kMaxExits = 16;

std::string_view leaf(std::string_view name) {
    const std::size_t colon = name.rfind("::");
    return colon == std::string_view::npos ? name : name.substr(colon + 2);
}

bool is_destructor(const Function& f) { return leaf(f.name.str()).starts_with('~'); }

bool is_constructor(const Function& f) {
    return !f.parent_class.empty() && leaf(f.name.str()) == leaf(f.parent_class.str());
}

bool is_closing(Value v) { return v == Value::restore || v == Value::off; }

bool closes(const Summary& summary) {
    return std::ranges::any_of(summary.exits, [](const Exit& exit) {
        return std::ranges::any_of(exit.cells, [](const Cell& c) { return is_closing(c.value); });
    });
}

bool is_unchanged(const Cells& cells) {
    return std::ranges::all_of(
        cells, [](const Cell& c) { return c.value == Value::entry && c.dtype_entry && !c.dtype_restore; });
}

Summary nobody_knows() {
    Exit exit;
    for (Cell& cell : exit.cells) cell.value = Value::unknown, cell.sure = false;
    return {.exits = {exit}};
}

// Merges exits with the same outcome. The merged exit keeps only the assumptions that all of them
// share.
void add_exit(std::vector<Exit>& exits, Exit exit) {
    for (Exit& known : exits) {
        if (known.cells != exit.cells) continue;
        std::erase_if(known.when, [&](const Assumption& a) {
            return std::ranges::find(exit.when, a) == exit.when.end();
        });
        return;
    }
    exits.push_back(std::move(exit));
}

}  // namespace

Effects::Effects(const Graph& graph, const AutocastApi& api)
    : graph_(graph), api_(api), summaries_(graph.size()), exploration_of_(graph.size()) {
    find_reaching();
    find_destructors();
    for (const auto& component : components()) solve(component);
}

const Exploration* Effects::exploration(std::uint32_t f) const {
    const std::uint32_t number = exploration_of_[f];
    return number == 0 ? nullptr : &explorations_[number - 1];
}

const ClassFacts* Effects::class_facts(Symbol name) const {
    const auto found = name.empty() ? classes_.end() : classes_.find(name);
    return found == classes_.end() ? nullptr : &found->second;
}

bool Effects::touches(std::uint32_t f, std::size_t call) const {
    if (api_.names_api(graph_.function(f).calls[call])) return true;
    return std::ranges::any_of(graph_.targets(f, call), [&](const Target& t) {
        const Summary& s = summaries_[t.function];
        return !t.spawned && (!s.changes_nothing() || s.returns_before);
    });
}

// Finds the functions from which a call of the API can be reached. All others are skipped from here
// on.
void Effects::find_reaching() {
    reaches_.assign(graph_.size(), 0);
    std::vector<std::uint32_t> pending;
    for (std::uint32_t f = 0; f < graph_.size(); ++f) {
        const Function& function = graph_.function(f);
        for (const Call& call : function.calls) {
            if (!api_.names_api(call)) continue;
            if (!reaches_[f]) pending.push_back(f);
            reaches_[f] = 1;
            if (function.parent_class.empty()) continue;
            if (api_.classify(function, call).kind == ApiKind::read_enabled)
                classes_[function.parent_class].reads_enabled = true;
        }
    }
    while (!pending.empty()) {
        const std::uint32_t f = pending.back();
        pending.pop_back();
        for (const CallRef& caller : graph_.callers(f)) {
            if (reaches_[caller.function]) continue;
            reaches_[caller.function] = 1;
            pending.push_back(caller.function);
        }
    }
}

void Effects::find_destructors() {
    for (std::uint32_t f = 0; f < graph_.size(); ++f) {
        const Function& function = graph_.function(f);
        if (reaches_[f] && is_destructor(function)) destructors_.try_emplace(function.parent_class, f);
    }
}

// The destructor shows whether an object is a guard. It is therefore solved before the constructor,
// and so before every function that makes such an object.
std::uint32_t Effects::destructor_for(std::uint32_t f) const {
    const Function& function = graph_.function(f);
    if (!is_constructor(function)) return Graph::kNobody;
    const auto found = destructors_.find(function.parent_class);
    return found == destructors_.end() ? Graph::kNobody : found->second;
}

// Strongly connected components, callees first. Tarjan's algorithm with an explicit stack, because
// the input decides how deep the call graph is.
std::vector<std::vector<std::uint32_t>> Effects::components() const {
    constexpr std::uint32_t kUnseen = ~std::uint32_t{0};
    struct Frame {
        std::uint32_t function = 0;
        std::uint32_t call = 0;  // in linked_calls
        std::uint32_t target = 0;
        bool fresh = true;
    };
    std::vector<std::uint32_t> order(graph_.size(), kUnseen), low(graph_.size(), 0), stack;
    std::vector<char> on_stack(graph_.size(), 0);
    std::vector<std::vector<std::uint32_t>> found;
    std::vector<Frame> frames;
    std::uint32_t next = 0;
    const auto open = [&](std::uint32_t f) {
        order[f] = low[f] = next++;
        stack.push_back(f);
        on_stack[f] = 1;
        frames.push_back({.function = f});
    };
    const auto follow = [&](std::uint32_t f, std::uint32_t callee) {
        if (!reaches_[callee]) return;
        if (order[callee] == kUnseen)
            open(callee);
        else if (on_stack[callee])
            low[f] = std::min(low[f], order[callee]);
    };
    const auto close = [&](std::uint32_t f) {
        if (low[f] != order[f]) return;
        auto& component = found.emplace_back();
        do {
            component.push_back(stack.back());
            on_stack[stack.back()] = 0;
            stack.pop_back();
        } while (component.back() != f);
        std::ranges::reverse(component);
    };
    for (std::uint32_t root = 0; root < graph_.size(); ++root) {
        if (order[root] != kUnseen || !reaches_[root]) continue;
        open(root);
        while (!frames.empty()) {
            Frame& frame = frames.back();
            const std::uint32_t f = frame.function;
            if (std::exchange(frame.fresh, false)) {
                if (const std::uint32_t d = destructor_for(f); d != Graph::kNobody) follow(f, d);
                continue;
            }
            const auto calls = graph_.linked_calls(f);
            if (frame.call == calls.size()) {
                frames.pop_back();
                close(f);
                if (!frames.empty())
                    low[frames.back().function] = std::min(low[frames.back().function], low[f]);
                continue;
            }
            const auto targets = graph_.targets(f, calls[frame.call]);
            if (frame.target == targets.size()) {
                ++frame.call;
                frame.target = 0;
                continue;
            }
            follow(f, targets[frame.target++].function);
        }
    }
    return found;
}

void Effects::solve(const std::vector<std::uint32_t>& component) {
    const bool cycle = component.size() > 1 || [&] {
        for (const std::uint32_t c : graph_.linked_calls(component[0]))
            for (const Target& t : graph_.targets(component[0], c))
                if (t.function == component[0]) return true;
        return false;
    }();
    if (cycle)
        for (const std::uint32_t f : component) summaries_[f].in_progress = true;
    bool changed = true;
    for (int round = 0; changed && round < (cycle ? kMaxRounds : 1); ++round) {
        changed = false;
        for (const std::uint32_t f : component) changed = explore(f) || changed;
    }
    const auto settle = [&] {
        for (const std::uint32_t f : component) {
            summaries_[f].in_progress = false;
            if (cycle && changed) summaries_[f] = nobody_knows();
        }
    };
    settle();
    if (cycle) {
        // The first exploration used unfinished summaries; repeat it with the final ones.
        for (const std::uint32_t f : component) explore(f);
        settle();
    }
    for (const std::uint32_t f : component) learn_class(f);
}

void Effects::keep(std::uint32_t f, Exploration found) {
    std::uint32_t& number = exploration_of_[f];
    if (number == 0) {
        explorations_.emplace_back();
        number = static_cast<std::uint32_t>(explorations_.size());
    }
    explorations_[number - 1] = std::move(found);
}

// True when the summary changed.
bool Effects::explore(std::uint32_t f) {
    const Function& function = graph_.function(f);
    bool any = false;
    for (std::size_t c = 0; c < function.calls.size() && !any; ++c) any = touches(f, c);
    if (!any) return false;
    Exploration found = Explorer(*this, f).run();
    Summary summary = summarize(f, found);
    summary.in_progress = summaries_[f].in_progress && summary.exits.empty() && found.exits.empty();
    keep(f, std::move(found));
    const bool changed = !(summary == summaries_[f]);
    summaries_[f] = std::move(summary);
    return changed;
}

bool Effects::opened_by_guard(std::uint32_t f, std::int32_t call) const {
    const Function& function = graph_.function(f);
    if (call == kNone || static_cast<std::size_t>(call) >= function.calls.size()) return false;
    const auto at = static_cast<std::size_t>(call);
    if (function.calls[at].kind != CallKind::constructor) return false;
    if (api_.names_api(function.calls[at])) return true;
    return std::ranges::any_of(graph_.targets(f, at), [&](const Target& t) {
        const ClassFacts* facts = class_facts(graph_.function(t.function).parent_class);
        return facts && facts->destructor_closes;
    });
}

Summary Effects::summarize(std::uint32_t f, const Exploration& found) const {
    if (found.overflow) return nobody_knows();
    Summary summary;
    for (const ExitState& state : found.exits) {
        Exit exit{.cells = state.cells, .when = state.assumed};
        for (Cell& cell : exit.cells) {
            if (cell.value == Value::on && opened_by_guard(f, cell.origin)) {
                cell.value = Value::unknown;
                cell.sure = false;
            }
            cell.origin = kNone;
            cell.before = Value::entry;
        }
        add_exit(summary.exits, std::move(exit));
    }
    if (summary.exits.size() > kMaxExits) return nobody_knows();
    if (summary.exits.size() == 1) {
        summary.exits[0].when.clear();
        if (is_unchanged(summary.exits[0].cells)) summary.exits.clear();
    }
    summary.returns_before = found.saved_returned;
    return summary;
}

void Effects::learn_class(std::uint32_t f) {
    const Function& function = graph_.function(f);
    if (function.parent_class.empty() || !closes(summaries_[f])) return;
    ClassFacts& facts = classes_[function.parent_class];
    (is_destructor(function) ? facts.destructor_closes : facts.method_closes) = true;
}

}  // namespace mp::lint
