#include "analyzer/region/contexts.hpp"

#include <algorithm>

#include "analyzer/region/arguments.hpp"
#include "analyzer/region/outer_regions.hpp"

namespace mp::lint {
namespace {

constexpr std::string_view kAnnotation = "mp::low_precision";

// custom_fwd(cast_inputs=...) casts the inputs and then leaves the region.
bool leaves_region(const Function& f) {
    return std::ranges::any_of(f.annotations, [](Symbol a) {
        const std::string_view text = a.str();
        const std::string_view name = text.substr(0, text.find('('));
        return name.ends_with(".custom_fwd") && text.find("cast_inputs=") != text.npos &&
               text.find("cast_inputs=None") == text.npos;
    });
}

// Kernels and device code run outside the dispatcher: autocast does not reach them.
bool has_autocast_state(const Function& f) {
    return f.kind != FunctionKind::kernel && f.kind != FunctionKind::device && !leaves_region(f);
}

// What tells this path apart from another that reaches the same call.
Symbol difference(const std::vector<Assumption>& here, const std::vector<Assumption>& there) {
    for (const Assumption& a : here) {
        if (std::ranges::find(there, a) != there.end()) continue;
        return a.when ? a.condition : Symbol("!(" + std::string(a.condition.str()) + ")");
    }
    return {};
}

int rank(const Context& c) {
    if (c.enabled == Switch::on) return c.proven ? 0 : 1;
    return c.enabled == Switch::unknown ? 2 : 3;
}

bool same_state(const Context& a, const Context& b) {
    return a.enabled == b.enabled && a.dtype == b.dtype && a.device == b.device &&
           a.proven == b.proven;
}

void add(std::vector<Context>& list, Context context) {
    for (const Context& known : list)
        if (same_state(known, context)) return;
    list.push_back(std::move(context));
}

}  // namespace

Contexts::Contexts(const Effects& effects, const RegionConfig& config)
    : effects_(effects), graph_(effects.graph()), config_(config), entries_(graph_.size()),
      always_in_region_(graph_.size(), 0),
      of_function_(std::make_unique<OnDemand[]>(graph_.size())), off_(1) {
    off_[0].proven = true;
    seed();
    propagate();
    // Functions that only call each other have no way in that we know: somebody outside calls them.
    for (std::uint32_t f = 0; f < graph_.size(); ++f) {
        if (!entries_[f].empty()) continue;
        enter({.function = f, .device = kBase, .via_nobody = true});
        propagate();
    }
    find_off();
}

bool Contexts::is_annotated(const Function& f, Node& node) const {
    for (const Symbol annotation : f.annotations) {
        std::string_view text = annotation.str();
        if (!text.starts_with(kAnnotation)) continue;
        text.remove_prefix(kAnnotation.size());
        if (!text.empty() && text[0] != ':') continue;
        node.dtype = text.empty() ? DType::lowp
                                  : dtype_from_name(text.substr(1)).value_or(DType::lowp);
        node.opener = annotation;
        return true;
    }
    if (!effects_.api().runs_in_region(f)) return false;
    node.dtype = config_.dtype;
    node.opener = f.name;
    return true;
}

void Contexts::seed() {
    std::vector<char> only_by_framework(graph_.size(), 0);
    for (const OuterRegion& region : find_outer_regions(graph_)) {
        if (region.always) only_by_framework[region.function] = 1;
        enter({.function = region.function,
               .device = region.device,
               .enabled = Switch::on,
               .dtype = region.dtype,
               .proven = region.proven,
               .via_nobody = true,
               .condition = region.condition,
               .opener = region.opener,
               .opened = region.opened,
               .process_wide = region.process_wide,
               .framework = !region.process_wide});
    }
    for (std::uint32_t f = 0; f < graph_.size(); ++f) {
        const Function& function = graph_.function(f);
        Node node{.function = f, .device = kUnknownDevice, .enabled = Switch::on};
        if (has_autocast_state(function) && is_annotated(function, node)) {
            node.opened = function.span;
            enter(node);
            always_in_region_[f] = 1;
        } else if (graph_.callers(f).empty() && !only_by_framework[f]) {
            enter({.function = f, .device = kBase, .via_nobody = true});
        }
    }
}

void Contexts::propagate() {
    // enter() appends to nodes_, so this walks breadth-first: the first way into a state is the
    // shortest.
    while (visited_ < nodes_.size()) visit(static_cast<std::int32_t>(visited_++));
}

void Contexts::enter(const Node& node) {
    if (always_in_region_[node.function]) return;
    for (const std::int32_t known : entries_[node.function]) {
        const Node& k = nodes_[static_cast<std::size_t>(known)];
        if (k.device == node.device && k.enabled == node.enabled && k.dtype == node.dtype &&
            (k.proven || k.proven == node.proven))
            return;
    }
    entries_[node.function].push_back(static_cast<std::int32_t>(nodes_.size()));
    nodes_.push_back(node);
    Node& added = nodes_.back();
    if (added.depth == kChainEnd) added.front = static_cast<std::int32_t>(nodes_.size()) - 1;
}

void Contexts::visit(std::int32_t node) {
    const std::size_t calls =
        graph_.function(nodes_[static_cast<std::size_t>(node)].function).calls.size();
    for (std::size_t c = 0; c < calls; ++c) visit_call(node, c);
}

void Contexts::visit_call(std::int32_t node, std::size_t call) {
    const Node entry = nodes_[static_cast<std::size_t>(node)];
    if (graph_.targets(entry.function, call).empty()) return;
    bool base = true;
    for (const Local& local : locals(entry, call)) {
        const bool is_default =
            local.enabled == Switch::off && local.dtype == default_dtype(local.device);
        if (is_default) continue;
        base = base && !local.proven;
        enter_targets(node, call, local);
    }
    if (base) enter_base(entry.function, call);
}

void Contexts::enter_base(std::uint32_t f, std::size_t call) {
    for (const Target& t : graph_.targets(f, call))
        enter({.function = t.function, .device = kBase});
}

void Contexts::enter_targets(std::int32_t from, std::size_t call, const Local& local) {
    const Node entry = nodes_[static_cast<std::size_t>(from)];
    Node next{.function = 0,
              .device = local.device,
              .enabled = local.enabled,
              .dtype = local.dtype,
              .proven = local.proven,
              .condition = local.condition,
              .opener = entry.opener,
              .opened = entry.opened,
              .parent = from,
              .front = entry.front,
              .depth = entry.depth + 1,
              .via = {entry.function, static_cast<std::uint32_t>(call)},
              .process_wide = entry.process_wide,
              .framework = entry.framework};
    if (!local.inherited) {
        next.process_wide = next.framework = false;
        next.opener = opener_name(entry.function, local.origin);
        next.opened = local.origin == kNone ? SourceSpan{}
                                            : graph_.function(entry.function)
                                                  .calls[static_cast<std::size_t>(local.origin)]
                                                  .span;
        next.parent = -1;
        next.front = -1;
        next.depth = 1;
    }
    for (const Target& t : graph_.targets(entry.function, call)) {
        next.function = t.function;
        next.proven = local.proven && t.sure;
        if (t.spawned || !has_autocast_state(graph_.function(t.function)))
            enter({.function = t.function, .device = kBase});
        else
            enter(next);
    }
}

Symbol Contexts::opener_name(std::uint32_t f, std::int32_t call) const {
    if (call == kNone) return {};
    const Call& c = graph_.function(f).calls[static_cast<std::size_t>(call)];
    if (c.kind == CallKind::constructor) return Symbol(class_of(c.name.str()));
    if (!is_enter(c)) return c.name;
    const std::string_view manager = c.name.str();
    return Symbol(manager.substr(0, manager.size() - std::string_view(".__enter__").size()));
}

std::vector<Contexts::Local> Contexts::locals(const Node& entry, std::size_t call) const {
    std::vector<Local> found;
    const Exploration* exploration = effects_.exploration(entry.function);
    if (exploration) {
        for (std::size_t d = 0; d < kDevices; ++d)
            add_locals(entry, *exploration, call, static_cast<Device>(d), found);
    } else if (entry.device != kBase) {
        found.push_back(
            {entry.device, entry.enabled, entry.dtype, entry.proven, true, entry.condition, kNone});
    }
    return found;
}

void Contexts::add_locals(const Node& entry, const Exploration& exploration, std::size_t call,
                          Device device, std::vector<Local>& out) const {
    const auto& indices = exploration.calls[call];
    const auto state = [&](std::uint32_t i) -> const CallState& { return exploration.states[i]; };
    const bool is_entry_device = entry.device == device;
    for (const std::uint32_t i : indices) {
        const Cell& cell = state(i).cells[device];
        Local local{
            .device = device, .inherited = cell.value == Value::entry, .origin = cell.origin};
        if (cell.value == Value::on)
            local.enabled = Switch::on;
        else if (cell.value == Value::off)
            local.enabled = Switch::off;
        else if (cell.value == Value::entry)
            local.enabled = is_entry_device ? entry.enabled : Switch::off;
        else
            local.enabled = Switch::unknown;
        local.dtype = !cell.dtype_entry ? cell.dtype
                      : is_entry_device ? entry.dtype
                                        : default_dtype(device);
        local.proven = cell.sure && local.enabled != Switch::unknown;
        if (local.inherited && is_entry_device) {
            local.proven = local.proven && entry.proven;
            local.condition = entry.condition;
        }
        // Another path reaches this call in another state: the region is open under a condition
        // only.
        for (const std::uint32_t j : indices) {
            const Cell& other = state(j).cells[device];
            if (other.value == cell.value) continue;
            local.proven = false;
            if (local.condition.empty())
                local.condition = difference(state(i).assumed, state(j).assumed);
        }
        if (cell.value == Value::param && local.condition.empty()) {
            const auto& params = graph_.function(entry.function).params;
            if (static_cast<std::size_t>(cell.param) < params.size())
                local.condition = params[static_cast<std::size_t>(cell.param)].name;
        }
        const bool is_new = std::ranges::none_of(out, [&](const Local& known) {
            return known.device == device && known.enabled == local.enabled &&
                   known.dtype == local.dtype && known.proven == local.proven;
        });
        if (is_new) out.push_back(local);
    }
}

bool Contexts::can_enter_enabled(std::uint32_t f, Device device) const {
    return std::ranges::any_of(entries_[f], [&](std::int32_t n) {
        const Node& node = nodes_[static_cast<std::size_t>(n)];
        return node.device == device && node.enabled == Switch::on;
    });
}

// One note per call from the opener to the function, in call order.
std::vector<Note> Contexts::chain_of(const Node& node) const {
    std::vector<Note> notes;
    const Node* n = &node;
    const auto up = [&] {
        return n->parent < 0 ? nullptr : &nodes_[static_cast<std::size_t>(n->parent)];
    };
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

// Which functions can be entered in a state, when `holds(f, call)` tells whether a call can run in it.
template <class Holds>
void Contexts::find_entered(std::vector<char>& at_entry, bool framework_too, Holds holds) {
    at_entry.assign(graph_.size(), 0);
    std::vector<std::uint32_t> pending;
    const auto mark = [&](std::uint32_t f) {
        if (at_entry[f] || always_in_region_[f]) return;
        at_entry[f] = 1;
        pending.push_back(f);
    };
    const auto follow = [&](std::uint32_t f) {
        for (std::size_t c = 0; c < graph_.function(f).calls.size(); ++c) {
            const auto targets = graph_.targets(f, c);
            if (targets.empty()) continue;
            const bool here = holds(f, c);
            for (const Target& t : targets)
                if (here || t.spawned || !has_autocast_state(graph_.function(t.function)))
                    mark(t.function);
        }
    };
    for (std::uint32_t f = 0; f < graph_.size(); ++f) {
        const bool outside = std::ranges::any_of(entries_[f], [&](std::int32_t n) {
            const Node& node = nodes_[static_cast<std::size_t>(n)];
            return node.via_nobody && (node.device == kBase || framework_too);
        });
        if (outside) mark(f);
        // Calls that run in the state whatever it was at the entry.
        if (!outside && effects_.exploration(f)) follow(f);
    }
    while (!pending.empty()) {
        const std::uint32_t f = pending.back();
        pending.pop_back();
        follow(f);
    }
}

// Devices are followed one by one; that all of them are off at once is a question of its own.
void Contexts::find_off() {
    find_entered(off_at_entry_, false,
                 [this](std::uint32_t f, std::size_t c) { return can_be_off(f, c); });
    find_entered(records_at_entry_, true,
                 [this](std::uint32_t f, std::size_t c) { return can_record(f, c); });
}

bool Contexts::can_be_off(std::uint32_t f, std::size_t call) const {
    const Exploration* exploration = effects_.exploration(f);
    if (!exploration) return off_at_entry_[f];
    return std::ranges::any_of(exploration->calls[call], [&](std::uint32_t s) {
        const auto cells = std::span(exploration->states[s].cells).first(kNoGrad);
        return std::ranges::all_of(cells, [&](const Cell& cell) {
            return cell.value == Value::off || (cell.value == Value::entry && off_at_entry_[f]);
        });
    });
}

bool Contexts::can_record(std::uint32_t f, std::size_t call) const {
    const Exploration* exploration = effects_.exploration(f);
    if (!exploration) return records_at_entry_[f];
    return std::ranges::any_of(exploration->calls[call], [&](std::uint32_t s) {
        const Value value = exploration->states[s].cells[kNoGrad].value;
        return value == Value::entry ? records_at_entry_[f] != 0 : value != Value::on;
    });
}

Switch Contexts::grad_at(std::uint32_t f, std::size_t call) const {
    const Exploration* exploration = effects_.exploration(f);
    bool off = can_enter_enabled(f, kNoGrad);
    if (exploration && call < exploration->calls.size())
        off = std::ranges::any_of(exploration->calls[call], [&](std::uint32_t s) {
            const Value value = exploration->states[s].cells[kNoGrad].value;
            return value == Value::entry ? can_enter_enabled(f, kNoGrad) : value != Value::off;
        });
    if (!off) return Switch::on;
    return can_record(f, call) ? Switch::unknown : Switch::off;
}

const std::vector<std::vector<Context>>& Contexts::of(std::uint32_t f) const {
    OnDemand& entry = of_function_[f];
    std::call_once(entry.made, [&] {
        const Exploration* exploration = effects_.exploration(f);
        if (!exploration) {
            entry.lists.push_back(make_for_function(f));
            return;
        }
        entry.lists.reserve(exploration->calls.size());
        for (std::size_t c = 0; c < exploration->calls.size(); ++c)
            entry.lists.push_back(make_for_call(f, c));
    });
    return entry.lists;
}

// Nothing changes inside: every call of the function runs in its entry states.
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
            if (local.enabled != Switch::off && local.device != kNoGrad)
                add(list, context_of(node, local));
    }
    const Switch grad = grad_at(f, call);
    const Context off = island_of(f, call);
    if (!list.empty() || grad != Switch::on || off.opened.known())
        finish(list, list.empty() || can_be_off(f, call) ? &off : nullptr, grad);
    return list;
}

// The state "off", with the block of this function that switched off, when there is one.
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
            // Closing a device closes the one that is not known too.
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

std::span<const Context> Contexts::at(std::uint32_t f, std::size_t call) const {
    if (f >= graph_.size()) return off_;
    const auto& lists = of(f);
    const std::size_t index = effects_.exploration(f) ? call : 0;
    if (index >= lists.size() || lists[index].empty()) return off_;
    return lists[index];
}

}  // namespace mp::lint
