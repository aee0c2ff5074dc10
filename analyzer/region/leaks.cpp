#include "analyzer/region/leaks.hpp"

#include <algorithm>
#include <string>

#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

bool contains(const std::vector<std::int32_t>& list, std::int32_t value) {
    return std::ranges::find(list, value) != list.end();
}

bool is_main(const Function& f) { return f.name.str() == "main"; }

// Orders exits, for choosing the one to show: known places first, in source order.
bool is_earlier(const SourceSpan& a, const SourceSpan& b) {
    if (a.known() != b.known()) return a.known();
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
}

std::vector<Note> path_of(const std::vector<Assumption>& assumed, const SourceSpan& at) {
    std::vector<const Assumption*> ordered;
    for (const Assumption& a : assumed) ordered.push_back(&a);
    std::ranges::sort(ordered, {}, [](const Assumption* a) { return a->condition.str(); });
    std::string text;
    for (const Assumption* a : ordered)
        text += (text.empty() ? "when " : " and ") + std::string(a->condition.str()) +
                (a->when ? " holds" : " does not hold");
    if (text.empty()) return {};
    return {{at, std::move(text)}};
}

// The blocks that control reaches instead of `block` when a branch with an unknown condition goes
// the other way. Known conditions are left out, because the paths respect them.
std::vector<std::uint32_t> ways_around(const Function& f, std::uint32_t block) {
    std::vector<std::vector<std::uint32_t>> before(f.flow.size());
    for (std::uint32_t b = 0; b < f.flow.size(); ++b)
        for (const Edge& e : f.flow[b].to)
            if (e.to < before.size()) before[e.to].push_back(b);
    std::vector<std::uint32_t> others;
    // Walks back to the last point where paths joined: what happened before does not decide about
    // the block.
    for (std::size_t steps = 0; steps < f.flow.size() && before[block].size() == 1; ++steps) {
        const std::uint32_t from = before[block][0];
        for (const Edge& e : f.flow[from].to)
            if (e.condition.empty() && e.to != block && e.to < f.flow.size()) others.push_back(e.to);
        block = from;
    }
    return others;
}

std::vector<char> reachable(const Function& f, std::vector<std::uint32_t> pending, std::uint32_t avoiding) {
    std::vector<char> reached(f.flow.size(), 0);
    for (const std::uint32_t b : pending) reached[b] = 1;
    while (!pending.empty()) {
        const std::uint32_t b = pending.back();
        pending.pop_back();
        for (const Edge& e : f.flow[b].to) {
            if (e.to >= reached.size() || e.to == avoiding || reached[e.to]) continue;
            reached[e.to] = 1;
            pending.push_back(e.to);
        }
    }
    return reached;
}

}  // namespace

Leaks::Leaks(const Effects& effects, const Contexts& contexts)
    : effects_(effects), graph_(effects.graph()), contexts_(contexts) {
    for (std::uint32_t f = 0; f < graph_.size(); ++f)
        if (const Exploration* exploration = effects_.exploration(f);
            exploration && !is_python(graph_.function(f)))  // Python's `with` closes on every exit
            inspect(f, *exploration);
}

void Leaks::inspect(std::uint32_t f, const Exploration& exploration) {
    if (exploration.overflow) return;
    for (std::size_t d = 0; d < kNoGrad; ++d) inspect_exits(f, exploration, static_cast<Device>(d));
    inspect_constants(f, exploration);
}

void Leaks::inspect_exits(std::uint32_t f, const Exploration& exploration, Device device) {
    std::unordered_map<std::int32_t, const ExitState*> open;
    std::vector<std::int32_t> order;
    for (const ExitState& exit : exploration.exits) {
        const Cell& cell = exit.cells[device];
        // The function switched the region off and on again: the state is as it was.
        if (cell.value != Value::on || !cell.sure || cell.origin == kNone || cell.before == Value::off)
            continue;
        const auto [entry, is_new] = open.try_emplace(cell.origin, &exit);
        if (is_new) order.push_back(cell.origin);
        if (!is_new && is_earlier(exit.leaves, entry->second->leaves)) entry->second = &exit;
    }
    const Function& function = graph_.function(f);
    for (const std::int32_t origin : order) {
        if (!is_responsible(f, exploration, origin)) continue;
        const bool closed = contains(exploration.closed, origin);
        if (closed && follows_unknown_branch(f, exploration, origin, device)) continue;
        const Call* opened = &function.calls[static_cast<std::size_t>(origin)];
        if (!reported_.insert(opened).second) continue;
        found_.push_back({.function = &function,
                          .opened = opened,
                          .leaves = open[origin]->leaves,
                          .restored_to_constant = false,
                          .process_wide = is_main(function) && !closed,
                          .path = path_of(open[origin]->assumed, opened->span)});
    }
}

void Leaks::inspect_constants(std::uint32_t f, const Exploration& exploration) {
    const Function& function = graph_.function(f);
    for (const ConstantClose& close : exploration.constant_closes) {
        const bool nested = close.before == Value::on ||
                            (close.before == Value::entry && contexts_.can_enter_enabled(f, close.device));
        const Call* opened = &function.calls[static_cast<std::size_t>(close.opened)];
        if (!nested || !reported_.insert(opened).second) continue;
        found_.push_back({.function = &function,
                          .opened = opened,
                          .leaves = function.calls[close.closed].span,
                          .restored_to_constant = true,
                          .process_wide = false,
                          .path = {}});
    }
}

// Whether this function should close the region that this call opened.
bool Leaks::is_responsible(std::uint32_t f, const Exploration& exploration, std::int32_t origin) {
    const auto call = static_cast<std::size_t>(origin);
    // A guard closes when its object dies. This object outlives the function, or its end is not
    // seen.
    if (effects_.opened_by_guard(f, origin)) return false;
    for (const Target& t : graph_.targets(f, call))
        if (!t.lambda && !is_opener(t.function)) return false;  // reported there
    if (contains(exploration.closed, origin)) return true;
    return !is_opener(f);
}

bool Leaks::is_opener(std::uint32_t f) {
    const auto [entry, is_new] = openers_.try_emplace(f, false);
    if (is_new) openers_[f] = decide_opener(f);
    return openers_[f];
}

// Whether the function exists to open a region: its object closes it, some caller closes it, or it
// does nothing else.
bool Leaks::decide_opener(std::uint32_t f) const {
    const Function& function = graph_.function(f);
    if (is_main(function)) return false;
    const ClassFacts* facts = effects_.class_facts(function.parent_class);
    if (facts && (facts->destructor_closes || facts->method_closes)) return true;
    for (const CallRef& caller : graph_.callers(f)) {
        const Exploration* exploration = effects_.exploration(caller.function);
        if (exploration && contains(exploration->closed, static_cast<std::int32_t>(caller.call))) return true;
    }
    return only_switches(f);
}

bool Leaks::only_switches(std::uint32_t f) const {
    const Function& function = graph_.function(f);
    for (std::size_t c = 0; c < function.calls.size(); ++c) {
        const Call& call = function.calls[c];
        if (!call.name.str().starts_with("at::autocast::") && !effects_.touches(f, c)) return false;
    }
    return true;
}

// `if (a()) open(); ... if (a()) close();` looks like a leak when it is unknown whether the two
// conditions agree. To detect it: the closing call can be reached by a path around the opening call
// that an unknown condition selects.
bool Leaks::follows_unknown_branch(std::uint32_t f, const Exploration& exploration, std::int32_t origin,
                                   Device device) const {
    const Function& function = graph_.function(f);
    if (function.flow.empty()) return false;
    const std::uint32_t block = function.calls[static_cast<std::size_t>(origin)].block;
    const auto others = ways_around(function, block);
    if (others.empty()) return false;
    const auto reached = reachable(function, others, block);
    for (std::size_t c = 0; c < function.calls.size(); ++c) {
        const std::uint32_t b = function.calls[c].block;
        if (static_cast<std::int32_t>(c) == origin || b >= reached.size() || !reached[b]) continue;
        if (!effects_.touches(f, c)) continue;
        // A call closes when the region is open before it. Here it is enough that the region can be
        // open.
        for (const std::uint32_t s : exploration.calls[c])
            if (exploration.states[s].cells[device].origin == origin) return true;
    }
    return false;
}

}  // namespace mp::lint
