// The lists of states in which a call can run. They are built when a rule asks for them.

#include <algorithm>

#include "analyzer/region/calls.hpp"
#include "analyzer/region/contexts.hpp"

namespace mp::lint {
namespace {

int rank(const Context& c) {
    if (c.enabled == Switch::on) return c.proven ? 0 : 1;
    return c.enabled == Switch::unknown ? 2 : 3;
}

bool same_state(const Context& a, const Context& b) {
    return a.enabled == b.enabled && a.dtype == b.dtype && a.device == b.device && a.proven == b.proven;
}

void add(std::vector<Context>& list, Context context) {
    for (const Context& known : list)
        if (same_state(known, context)) return;
    list.push_back(std::move(context));
}

}  // namespace

Symbol Contexts::opener_name(std::uint32_t f, std::int32_t call) const {
    if (call == kNone) return {};
    const Call& c = graph_.function(f).calls[static_cast<std::size_t>(call)];
    if (c.kind == CallKind::constructor) return Symbol(class_of(c.name.str()));
    if (!is_enter(c)) return c.name;
    const std::string_view manager = c.name.str();
    return Symbol(manager.substr(0, manager.size() - std::string_view(".__enter__").size()));
}

// One note per call from the opener to the function, in call order.
std::vector<Note> Contexts::chain_of(const Node& node) const {
    std::vector<Note> notes;
    const Node* n = &node;
    const auto up = [&] { return n->parent < 0 ? nullptr : &nodes_[static_cast<std::size_t>(n->parent)]; };
    for (; n && n->depth > 0 && notes.size() < kChainEnd; n = up()) notes.push_back(note_of(*n));
    if (n && n->depth > kChainEnd) {
        notes.push_back({{}, std::to_string(n->depth - kChainEnd) + " more calls in between"});
        n = &nodes_[static_cast<std::size_t>(n->front)];
    }
    for (; n && n->depth > 0; n = up()) notes.push_back(note_of(*n));
    std::ranges::reverse(notes);
    return notes;
}

Note Contexts::note_of(const Node& node) const {
    const Function& caller = graph_.function(node.via.function);
    const Function& callee = graph_.function(node.function);
    std::string text(caller.display.str());
    text += callee.kind == FunctionKind::lambda ? " runs a lambda here" : " calls ";
    if (callee.kind != FunctionKind::lambda) text += std::string(callee.display.str()) + " here";
    return {caller.calls[node.via.call].span, std::move(text)};
}

Context Contexts::context_of(const Node& n) const {
    return {.enabled = n.enabled,
            .dtype = n.dtype,
            .device = Symbol(kDeviceNames[n.device]),
            .opened = n.opened,
            .opener = n.opener,
            .proven = n.proven,
            .condition = n.condition,
            .chain = chain_of(n),
            .process_wide = n.process_wide,
            .framework = n.framework};
}

Context Contexts::context_of(const Node& entry, const Local& local) const {
    Context context;
    if (local.inherited && entry.device == local.device) context = context_of(entry);
    context.enabled = local.enabled;
    context.dtype = local.dtype;
    context.device = Symbol(kDeviceNames[local.device]);
    context.proven = local.proven;
    context.condition = local.condition;
    if (!local.inherited && local.origin != kNone) {
        const Function& f = graph_.function(entry.function);
        context.opened = f.calls[static_cast<std::size_t>(local.origin)].span;
        context.opener = opener_name(entry.function, local.origin);
    }
    return context;
}

const Contexts::OnDemand& Contexts::of(std::uint32_t f) const {
    OnDemand& entry = of_function_[f];
    std::call_once(entry.made, [&] {
        const Exploration* exploration = effects_.exploration(f);
        if (!exploration) {
            entry.lists.push_back(make_for_function(f));
            return;
        }
        entry.list_of.reserve(exploration->calls.size());
        for (std::size_t c = 0; c < exploration->calls.size(); ++c) {
            if (c == 0 || !same_states(f, c - 1, c)) entry.lists.push_back(make_for_call(f, c));
            entry.list_of.push_back(static_cast<std::uint32_t>(entry.lists.size()) - 1);
        }
    });
    return entry;
}

// For a function that does not change the state: every call runs in the function's entry states.
std::vector<Context> Contexts::make_for_function(std::uint32_t f) const {
    std::vector<Context> list;
    for (const std::int32_t n : entries_[f]) {
        const Node& node = nodes_[static_cast<std::size_t>(n)];
        if (node.device < kNoGrad && node.enabled != Switch::off) add(list, context_of(node));
    }
    const Switch grad = grad_at(f, 0);
    if (!list.empty() || grad != Switch::on)
        finish(list, list.empty() || off_at_entry_[f] ? &off_[0] : nullptr, grad);
    return list;
}

std::vector<Context> Contexts::make_for_call(std::uint32_t f, std::size_t call) const {
    std::vector<Context> list;
    for (const std::int32_t n : entries_[f]) {
        const Node& node = nodes_[static_cast<std::size_t>(n)];
        for (const Local& local : locals(node, call))
            if (local.enabled != Switch::off && local.device != kNoGrad) add(list, context_of(node, local));
    }
    const Switch grad = grad_at(f, call);
    const Context off = island_of(f, call);
    if (!list.empty() || grad != Switch::on || off.opened.known())
        finish(list, list.empty() || can_be_off(f, call) ? &off : nullptr, grad);
    return list;
}

// The state "off". If a block of this function switched autocast off, the state names it as opener.
Context Contexts::island_of(std::uint32_t f, std::size_t call) const {
    Context off = off_[0];
    const Exploration* exploration = effects_.exploration(f);
    for (const std::uint32_t s : exploration->calls[call]) {
        for (std::size_t d = kDevices; d-- > 0;) {
            const Cell& cell = exploration->states[s].cells[d];
            if (d == kNoGrad || cell.value != Value::off || cell.origin == kNone) continue;
            const Call& closed = graph_.function(f).calls[static_cast<std::size_t>(cell.origin)];
            off.opened = closed.span;
            off.opener = opener_name(f, cell.origin);
            // Closing a known device also closes the unknown device, so name the known one.
            if (off.device.empty()) off.device = Symbol(kDeviceNames[d]);
        }
    }
    return off;
}

// The states that matter most first; one "off" stands for all devices.
void Contexts::finish(std::vector<Context>& list, const Context* off, Switch grad) const {
    if (off) list.push_back(*off);
    std::vector<Context> sorted;
    for (int r = 0; r < 4; ++r)
        for (Context& context : list)
            if (rank(context) == r) sorted.push_back(std::move(context));
    list = std::move(sorted);
    for (Context& context : list) context.grad = grad;
}

// True for most functions: every entry state is off, and the function does not change it.
bool Contexts::is_always_off(std::uint32_t f) const {
    return !effects_.exploration(f) && std::ranges::all_of(entries_[f], [&](std::int32_t n) {
        return nodes_[static_cast<std::size_t>(n)].enabled == Switch::off;
    });
}

std::span<const Context> Contexts::at(std::uint32_t f, std::size_t call) const {
    if (f >= graph_.size() || is_always_off(f)) return off_;
    const OnDemand& made = of(f);
    const bool by_call = effects_.exploration(f) != nullptr;
    if (by_call && call >= made.list_of.size()) return off_;
    const std::vector<Context>& list = made.lists[by_call ? made.list_of[call] : 0];
    return list.empty() ? std::span<const Context>(off_) : list;
}

}  // namespace mp::lint
