#include "analyzer/region/dtypes.hpp"

#include <algorithm>

#include "analyzer/region/calls.hpp"

namespace mp::lint {

DTypes::DTypes(const Graph& graph) : graph_(graph) {
    std::uint32_t next = 0;
    first_slot_.reserve(graph.size());
    for (const Function* f : graph.functions()) {
        first_slot_.push_back(next);
        next += 1 + static_cast<std::uint32_t>(f->params.size());
    }
    slots_.resize(next);
    connect();
    sort_flows();
    settle();
}

std::uint32_t DTypes::owner_of(std::uint32_t slot) const {
    const auto after = std::ranges::upper_bound(first_slot_, slot);
    return static_cast<std::uint32_t>(after - first_slot_.begin()) - 1;
}

void DTypes::connect() {
    for (std::uint32_t f = 0; f < graph_.size(); ++f) {
        const Function& function = graph_.function(f);
        for (std::size_t p = 0; p < function.params.size(); ++p) {
            const std::uint32_t slot = param_slot(f, static_cast<std::int32_t>(p));
            if (function.params[p].dtype != DType::unknown)
                merge(slot, function.params[p].dtype, kNone, nullptr);
            else if (graph_.callers(f).empty())
                set_unknown(slot);
        }
        if (function.returns != DType::unknown)
            merge(result_slot(f), function.returns, kNone, nullptr);
        else if (function.returned.empty())
            set_unknown(result_slot(f));
        else
            for (const Operand& o : function.returned) flow(f, o, result_slot(f), &function.span);
        for (const std::uint32_t c : graph_.linked_calls(f)) connect_call(f, c);
    }
}

void DTypes::connect_call(std::uint32_t f, std::size_t call) {
    const Call& c = graph_.function(f).calls[call];
    for (const Target& target : graph_.targets(f, call)) {
        const Function& callee = graph_.function(target.function);
        const Passed passed(c, callee);
        for (std::size_t p = 0; p < callee.params.size(); ++p) {
            const std::uint32_t slot = param_slot(target.function, static_cast<std::int32_t>(p));
            if (callee.params[p].dtype != DType::unknown || slots_[slot].is == Slot::Is::unknown) continue;
            // A lambda's arguments come from the function that calls it. A missing argument has its
            // default.
            const Operand* argument = target.lambda ? nullptr : passed[p];
            if (argument)
                flow(f, *argument, slot, &c.span);
            else
                set_unknown(slot);
        }
    }
}

// Visits the slots that the operand's dtype comes from; false when it comes from no slot.
template <class Visit>
bool DTypes::for_each_source(std::uint32_t f, const Operand& o, Visit visit) const {
    const Function& function = graph_.function(f);
    if (o.param != kNone && static_cast<std::size_t>(o.param) < function.params.size()) {
        visit(param_slot(f, o.param));
        return true;
    }
    bool any = false;
    if (o.call == kNone || static_cast<std::size_t>(o.call) >= function.calls.size()) return any;
    for (const Target& t : graph_.targets(f, static_cast<std::size_t>(o.call))) {
        if (t.lambda) continue;
        visit(result_slot(t.function));
        any = true;
    }
    return any;
}

void DTypes::flow(std::uint32_t f, const Operand& o, std::uint32_t to, const SourceSpan* at) {
    if (o.assumed) return set_unknown(to);
    if (o.dtype != DType::unknown) return merge(to, o.dtype, kNone, at);
    const Function& function = graph_.function(f);
    const auto call = static_cast<std::size_t>(o.call);
    if (o.param == kNone && o.call != kNone && call < function.calls.size() &&
        function.calls[call].result.dtype != DType::unknown) {
        if (function.calls[call].result.assumed) return set_unknown(to);
        return merge(to, function.calls[call].result.dtype, kNone, at);
    }
    const bool ours = for_each_source(f, o, [&](std::uint32_t from) { flows_.push_back({from, to, at}); });
    if (!ours) set_unknown(to);
}

// Groups the flows by source slot. Slots that are already known are propagated when settle()
// starts.
void DTypes::sort_flows() {
    first_flow_.assign(slots_.size() + 1, 0);
    for (const Flow& flow : flows_) ++first_flow_[flow.from + 1];
    for (std::size_t i = 1; i < first_flow_.size(); ++i) first_flow_[i] += first_flow_[i - 1];
    std::vector<Flow> sorted(flows_.size());
    std::vector<std::uint32_t> next(first_flow_.begin(), first_flow_.end() - 1);
    for (const Flow& flow : flows_) sorted[next[flow.from]++] = flow;
    flows_ = std::move(sorted);
}

void DTypes::merge(std::uint32_t slot, DType dtype, std::int32_t source, const SourceSpan* at) {
    Slot& s = slots_[slot];
    if (s.is == Slot::Is::unknown || (s.is == Slot::Is::known && s.dtype == dtype)) return;
    if (s.is == Slot::Is::known) return set_unknown(slot);
    s = {Slot::Is::known, dtype, source, at};
    changed_.push_back(slot);
}

void DTypes::set_unknown(std::uint32_t slot) {
    if (slots_[slot].is == Slot::Is::unknown) return;
    slots_[slot] = {Slot::Is::unknown, DType::unknown, kNone, nullptr};
    changed_.push_back(slot);
}

// Every slot changes at most twice, so this visits every flow at most twice.
void DTypes::settle() {
    while (!changed_.empty()) {
        const std::uint32_t slot = changed_.back();
        changed_.pop_back();
        const Slot from = slots_[slot];
        for (std::uint32_t i = first_flow_[slot]; i < first_flow_[slot + 1]; ++i) {
            const Flow& next = flows_[i];
            if (from.is == Slot::Is::known)
                merge(next.to, from.dtype, static_cast<std::int32_t>(slot), next.at);
            else
                set_unknown(next.to);
        }
    }
}

Note DTypes::note_of(std::uint32_t slot) const {
    const std::uint32_t f = owner_of(slot);
    const Function& function = graph_.function(f);
    const std::string dtype(name_of(slots_[slot].dtype));
    if (slot == result_slot(f))
        return {*slots_[slot].at, std::string(function.display.str()) + " returns " + dtype};
    const Symbol name = function.params[slot - first_slot_[f] - 1].name;
    return {*slots_[slot].at, std::string(name.empty() ? "an argument" : name.str()) + " of " +
                                  std::string(function.display.str()) + " is " + dtype + " here"};
}

ResolvedDType DTypes::of(std::uint32_t f, const Operand& o) const {
    if (o.dtype != DType::unknown) return {.dtype = o.dtype, .chain = {}};
    const Function& function = graph_.function(f);
    const auto call = static_cast<std::size_t>(o.call);
    if (o.param == kNone && o.call != kNone && call < function.calls.size()) {
        const Call& c = function.calls[call];
        if (c.result.dtype != DType::unknown) return {.dtype = c.result.dtype, .chain = {}};
    }
    ResolvedDType found;
    std::int32_t first = kNone;
    bool agree = true;
    for_each_source(f, o, [&](std::uint32_t source) {
        const Slot& s = slots_[source];
        agree = agree && s.is == Slot::Is::known && (first == kNone || s.dtype == found.dtype);
        found.dtype = s.dtype;
        if (first == kNone) first = static_cast<std::int32_t>(source);
    });
    if (!agree) return {};
    for (std::int32_t at = first; at != kNone && found.chain.size() < kMaxNotes;
         at = slots_[static_cast<std::size_t>(at)].source) {
        const SourceSpan* where = slots_[static_cast<std::size_t>(at)].at;
        if (where && where->known()) found.chain.push_back(note_of(static_cast<std::uint32_t>(at)));
    }
    return found;
}

}  // namespace mp::lint
