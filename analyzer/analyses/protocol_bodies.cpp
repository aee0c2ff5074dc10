// Properties of a function that the paths need before they run it: the events in each block, the events
// that can still happen from there, and the conditions that matter.

#include <algorithm>

#include "analyzer/analyses/autocast_calls.hpp"
#include "analyzer/analyses/dataflow.hpp"
#include "analyzer/analyses/protocol_paths.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"

namespace mp::lint {
namespace {

using enum EventKind;

std::size_t block_count(const Function& f) { return f.flow.empty() ? 1 : f.flow.size(); }

// "train" of train.main and of train.Net.loss.
std::string_view module_of(const Function& f) {
    const std::string_view name = f.parent_class.empty() ? f.usr.str() : f.parent_class.str();
    return name.substr(0, std::min(name.rfind('.'), name.size()));
}

// Two scripts with the same name in different folders: it is unknown which one is called.
bool is_of_a_namesake(const Function& f, const Function& callee) {
    return is_python(f) && f.span.file != callee.span.file && module_of(f) == module_of(callee);
}

}  // namespace

const std::array<DutyMasks, kDuties>& duty_masks() {
    static constexpr std::array<DutyMasks, kDuties> kMasks{{
        {mask_of(backward), mask_of(unscale) | mask_of(read_scale), mask_of(clip) | mask_of(inspect)},
        {mask_of(scaler_step), mask_of(update), 0},
        {mask_of(unscale), mask_of(scaler_step) | mask_of(update), 0},
        {mask_of(backward), mask_of(scaler_step) | mask_of(unscale) | mask_of(read_scale),
         mask_of(optimizer_step)},
        {mask_of(backward), mask_of(scaler_step), mask_of(update)},
    }};
    return kMasks;
}

EventMask Paths::mask(const Function& f) const {
    const auto found = masks_.find(&f);
    return found == masks_.end() ? 0 : found->second;
}

void Paths::seed_masks() {
    for_each_call(program_, Roles::may_be_event, [&](const Function& f, const Call& c) {
        const EventKind kind = event_of(f, c).kind;
        if (kind != none) masks_[&f] |= mask_of(kind);
    });
}

// From the functions where something happens up to all that call them.
void Paths::find_masks() {
    seed_masks();
    std::vector<const Function*> pending;
    for (const auto& [f, own] : masks_) pending.push_back(f);
    while (!pending.empty()) {
        const Function* f = pending.back();
        pending.pop_back();
        const EventMask below = masks_[f];
        for (const Call* c : program_.callers(f->usr)) {
            const Function* caller = program_.owner(*c);
            if (!caller || event_of(*caller, *c).kind != none) continue;
            EventMask& known = masks_[caller];
            if ((known | below) == known) continue;
            known |= below;
            pending.push_back(caller);
        }
    }
}

Paths::Body& Paths::body(const Function& f) {
    const auto [entry, is_new] = bodies_.try_emplace(&f);
    Body& made = entry->second;
    if (!is_new) return made;
    made.blocks.resize(block_count(f));
    for (std::size_t i = 0; i < f.calls.size(); ++i) {
        const Call& c = f.calls[i];
        Item item{static_cast<std::int32_t>(i), event_of(f, c), nullptr, 0};
        item.mask = mask_of(item.event.kind) & ~mask_of(none);
        if (item.event.kind == none && !c.callee.empty()) {
            item.callee = program_.definition(c.callee);
            if (item.callee && is_of_a_namesake(f, *item.callee)) item.callee = nullptr;
            if (item.callee) item.mask = mask(*item.callee);
        }
        item.unseen = unseen_by(f, c, item);
        const bool matters = item.mask || item.unseen != Item::Unseen::none || !c.result.name.empty();
        if (c.block < made.blocks.size() && matters) made.blocks[c.block].push_back(item);
    }
    made.flow = ControlFlow(f);
    find_reach(f, made);
    find_tracked(f, made);
    find_aliases(f, made);
    return made;
}

// What a function of the program does counts, not its name: a clip of its own may unscale first, and a method
// `backward` may scale. No loss comes from a region that records no gradients.
Event Paths::event_of(const Function& f, const Call& c) const {
    const Event event = roles_.event(f, c);
    if (event.kind == region && records_nothing(f, c)) return {};
    if (event.kind == none && unscales_by_hand(c)) return {read_scale, {}, {}, nullptr};
    if ((event.kind != clip && event.kind != backward && event.kind != managed) || c.callee.empty())
        return event;
    const Function* const own = program_.definition(c.callee);
    return own && goes_on_inside(*own, event.kind == clip) ? Event{} : event;
}

// self._unscale_grads(): arithmetic of its own, which may do nothing where the factor is 1.
bool Paths::unscales_by_hand(const Call& c) const {
    if (c.callee.empty() || !mentions(leaf(c.name.str()), "unscale")) return false;
    const Function* const own = program_.definition(c.callee);
    return own && !goes_on_inside(*own, true);
}

bool Paths::records_nothing(const Function& f, const Call& enter) const {
    bool runs = false;
    for (const std::size_t inside : calls_inside(f, static_cast<std::size_t>(index_of(f, enter))))
        for (const Context& context : program_.contexts(f, f.calls[inside])) {
            if (context.enabled != Switch::on) continue;
            if (context.grad != Switch::off) return false;
            runs = true;
        }
    return runs;
}

bool Paths::goes_on_inside(const Function& own, bool clips) const {
    constexpr EventMask kProtocol =
        mask_of(unscale) | mask_of(read_scale) | mask_of(scaler_step) | mask_of(update) | mask_of(managed);
    const EventMask wanted = clips ? kProtocol : kProtocol | mask_of(scale) | mask_of(backward);
    return std::ranges::any_of(
        own.calls, [&](const Call& c) { return (mask_of(roles_.event(own, c).kind) & wanted) != 0; });
}

// A function that only calls another one, once: its paths are those of the other.
bool Paths::only_forwards(const Function& f) {
    const Body& own = body(f);
    std::size_t calls = 0;
    for (const Call& c : f.calls) {
        if (event_of(f, c).kind != none) return false;
        const Function* const callee = c.callee.empty() ? nullptr : program_.definition(c.callee);
        if (!callee || !mask(*callee)) continue;
        if (callee == &f || own.flow.is_in_loop(c.block) || ++calls > 1) return false;
    }
    return calls == 1;
}

void Paths::find_overriders() {
    for (const auto& [f, happens] : masks_)
        for (const Symbol base : f->overrides) overriders_[base].push_back(f);
}

Paths::Item::Unseen Paths::unseen_by(const Function& f, const Call& c, const Item& item) const {
    constexpr EventMask kProtocol =
        mask_of(scale) | mask_of(unscale) | mask_of(read_scale) | mask_of(scaler_step) | mask_of(update);
    if (item.event.kind != none || !is_python(f) || c.kind == CallKind::op) return Item::Unseen::none;
    if (const auto others = overriders_.find(c.callee); others != overriders_.end())
        for (const Function* other : others->second)
            if (mask(*other) & kProtocol & ~item.mask) return Item::Unseen::all;
    if (item.callee) return Item::Unseen::none;
    const bool is_method = c.kind == CallKind::method && !c.args.empty();
    if (is_method && c.args[0].name.str() == "self") return Item::Unseen::all;
    const auto is_scaler = [&](const Operand& o) { return roles_.names_scaler(f, o); };
    const bool given = std::any_of(c.args.begin() + (is_method ? 1 : 0), c.args.end(), is_scaler);
    return given ? Item::Unseen::arguments : Item::Unseen::none;
}

bool Paths::dominates(const Body& body, std::uint32_t a, std::uint32_t b) {
    return a == Obligation::kOutside || body.flow.dominates(a, b);
}

namespace {

// Per block: whether `wanted` can come before `stop` from its start.
template <typename Blocks>
std::vector<char> reachable(const Function& f, const Blocks& blocks, EventMask wanted, EventMask stop) {
    std::vector<char> found(blocks.size(), 0), ends(blocks.size(), 0);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        for (const auto& item : blocks[b]) {
            if (item.mask & wanted) found[b] = 1;
            if (item.mask & (wanted | stop)) {
                ends[b] = 1;
                break;
            }
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t b = f.flow.size(); b-- > 0;) {
            if (found[b] || ends[b]) continue;
            for (const Edge& e : f.flow[b].to)
                if (!e.raises && e.to < found.size() && found[e.to]) found[b] = 1, changed = true;
        }
    }
    return found;
}

}  // namespace

void Paths::find_reach(const Function& f, Body& body) const {
    for (std::size_t d = 0; d < kDuties; ++d) {
        const DutyMasks& m = duty_masks()[d];
        body.settles[d] = reachable(f, body.blocks, m.settles, m.opens | m.claims);
        body.claims[d] = reachable(f, body.blocks, m.claims, m.opens);
    }
}

// Tracks only the conditions that decide whether an event of the protocol happens.
void Paths::find_tracked(const Function& f, Body& body) const {
    std::vector<Symbol> conditions;
    for (const Block& b : f.flow)
        for (const Edge& e : b.to)
            if (!e.condition.empty() && std::ranges::find(conditions, e.condition) == conditions.end())
                conditions.push_back(e.condition);
    const auto eventful = [&](std::size_t b) {
        return std::ranges::any_of(body.blocks[b], [](const Item& i) { return i.mask != 0; });
    };
    for (const Symbol condition : conditions) {
        if (body.tracked.size() >= 16) return;
        for (const bool when : {true, false}) {
            std::vector<char> reached(f.flow.size(), 0);
            std::vector<std::uint32_t> pending{0};
            reached[0] = 1;
            while (!pending.empty()) {
                const Block& b = f.flow[pending.back()];
                pending.pop_back();
                for (const Edge& e : b.to) {
                    if (e.to >= reached.size() || reached[e.to]) continue;
                    if (e.condition == condition && e.when == when) continue;
                    reached[e.to] = 1;
                    pending.push_back(e.to);
                }
            }
            bool matters = false;
            for (std::size_t b = 0; b < reached.size() && !matters; ++b) matters = !reached[b] && eventful(b);
            if (!matters) continue;
            body.tracked.push_back(condition);
            break;
        }
    }
}

}  // namespace mp::lint
