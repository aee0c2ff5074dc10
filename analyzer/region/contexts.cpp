#include "analyzer/region/contexts.hpp"

#include <algorithm>

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

// An assumption of this path that another path to the same call does not share.
Symbol difference(const std::vector<Assumption>& here, const std::vector<Assumption>& there) {
    for (const Assumption& a : here) {
        if (std::ranges::find(there, a) != there.end()) continue;
        return a.when ? a.condition : Symbol("!(" + std::string(a.condition.str()) + ")");
    }
    return {};
}

}  // namespace

Contexts::Contexts(const Effects& effects, const RegionConfig& config)
    : effects_(effects),
      graph_(effects.graph()),
      config_(config),
      entries_(graph_.size()),
      always_in_region_(graph_.size(), 0),
      of_function_(std::make_unique<OnDemand[]>(graph_.size())),
      off_(1) {
    off_[0].proven = true;
    seed();
    propagate();
    // Functions that only call each other have no known caller: they are assumed to be called from
    // outside the program.
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
        node.dtype = text.empty() ? DType::lowp : dtype_from_name(text.substr(1)).value_or(DType::lowp);
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
    // enter() appends to nodes_, so this is a breadth-first walk: the first path into a state is
    // the shortest.
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
    const Node entry = nodes_[static_cast<std::size_t>(node)];  // a copy, because nodes_ grows during the
                                                                // loop
    const auto calls = graph_.linked_calls(entry.function);
    std::vector<Local> here;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (i == 0 || !same_states(entry.function, calls[i - 1], calls[i])) here = locals(entry, calls[i]);
        visit_call(node, calls[i], here);
    }
}

bool Contexts::same_states(std::uint32_t f, std::size_t call, std::size_t other) const {
    const Exploration* exploration = effects_.exploration(f);
    return !exploration || exploration->calls[call] == exploration->calls[other];
}

void Contexts::visit_call(std::int32_t node, std::size_t call, const std::vector<Local>& here) {
    bool base = true;
    for (const Local& local : here) {
        const bool is_default = local.enabled == Switch::off && local.dtype == default_dtype(local.device);
        if (is_default) continue;
        base = base && !local.proven;
        enter_targets(node, call, local);
    }
    if (base) enter_base(nodes_[static_cast<std::size_t>(node)].function, call);
}

void Contexts::enter_base(std::uint32_t f, std::size_t call) {
    for (const Target& t : graph_.targets(f, call)) enter({.function = t.function, .device = kBase});
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
        next.opened =
            local.origin == kNone
                ? SourceSpan{}
                : graph_.function(entry.function).calls[static_cast<std::size_t>(local.origin)].span;
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

void Contexts::add_locals(const Node& entry, const Exploration& exploration, std::size_t call, Device device,
                          std::vector<Local>& out) const {
    const auto& indices = exploration.calls[call];
    const auto state = [&](std::uint32_t i) -> const CallState& { return exploration.states[i]; };
    const bool is_entry_device = entry.device == device;
    for (const std::uint32_t i : indices) {
        const Cell& cell = state(i).cells[device];
        Local local{.device = device, .inherited = cell.value == Value::entry, .origin = cell.origin};
        if (cell.value == Value::on)
            local.enabled = Switch::on;
        else if (cell.value == Value::off)
            local.enabled = Switch::off;
        else if (cell.value == Value::entry)
            local.enabled = is_entry_device ? entry.enabled : Switch::off;
        else
            local.enabled = Switch::unknown;
        local.dtype = !cell.dtype_entry ? cell.dtype : is_entry_device ? entry.dtype : default_dtype(device);
        local.proven = cell.sure && local.enabled != Switch::unknown;
        if (local.inherited && is_entry_device) {
            local.proven = local.proven && entry.proven;
            local.condition = entry.condition;
        }
        // Another path reaches this call in another state, so the region is open only under a
        // condition.
        for (const std::uint32_t j : indices) {
            const Cell& other = state(j).cells[device];
            if (other.value == cell.value) continue;
            local.proven = false;
            if (local.condition.empty()) local.condition = difference(state(i).assumed, state(j).assumed);
        }
        if (cell.value == Value::param && local.condition.empty()) {
            const auto& params = graph_.function(entry.function).params;
            if (static_cast<std::size_t>(cell.param) < params.size())
                local.condition = params[static_cast<std::size_t>(cell.param)].name;
        }
        const bool is_new = std::ranges::none_of(out, [&](const Local& known) {
            return known.device == device && known.enabled == local.enabled && known.dtype == local.dtype &&
                   known.proven == local.proven;
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

// Finds the functions that can be entered in a state. `holds(f, call)` returns whether a call can
// run in that state.
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
        for (const std::uint32_t c : graph_.linked_calls(f)) {
            const bool here = holds(f, c);
            for (const Target& t : graph_.targets(f, c))
                if (here || t.spawned || !has_autocast_state(graph_.function(t.function))) mark(t.function);
        }
    };
    for (std::uint32_t f = 0; f < graph_.size(); ++f) {
        const bool outside = std::ranges::any_of(entries_[f], [&](std::int32_t n) {
            const Node& node = nodes_[static_cast<std::size_t>(n)];
            return node.via_nobody && (node.device == kBase || framework_too);
        });
        if (outside) mark(f);
        // Calls that run in the state whatever the state at entry was.
        if (!outside && effects_.exploration(f)) follow(f);
    }
    while (!pending.empty()) {
        const std::uint32_t f = pending.back();
        pending.pop_back();
        follow(f);
    }
}

// Nodes hold the state of one device, so "all devices are off at once" needs a walk of its own.
void Contexts::find_off() {
    find_entered(off_at_entry_, false, [this](std::uint32_t f, std::size_t c) { return can_be_off(f, c); });
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

}  // namespace mp::lint
