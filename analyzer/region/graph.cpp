#include "analyzer/region/graph.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

// Identifies one body that several units contain (the same instantiation). The place is part of the
// key, because programs of one tree may each have a `main`.
struct Identity {
    Symbol usr;
    Symbol file;
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    friend bool operator==(const Identity&, const Identity&) = default;
};
struct IdentityHash {
    std::size_t operator()(const Identity& i) const {
        const std::uint64_t both = (std::uint64_t{i.usr.id()} << 32 | i.file.id()) * 0x9e3779b97f4a7c15u;
        return static_cast<std::size_t>(both ^ (both >> 29) ^ (std::uint64_t{i.line} << 12) ^ i.column);
    }
};

Identity identity_of(const Function& f) { return {f.usr, f.span.file, f.span.line, f.span.column}; }

struct Candidate {
    const Function* body = nullptr;
    const Unit* unit = nullptr;
};

// Orders two facts of the same body: the one from the cleaner unit is better, then the one with
// more facts, then the lower path, so that the order of the units does not matter.
bool is_better(const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& c) {
        return std::tuple(static_cast<int>(c.unit->state),
                          -static_cast<std::ptrdiff_t>(c.body->calls.size() + c.body->casts.size()),
                          c.unit->path.str());
    };
    return rank(a) < rank(b);
}

bool starts_thread(std::string_view name) {
    constexpr std::string_view kSpawners[] = {"std::thread", "std::jthread", "std::async", "pthread_create",
                                              "threading.Thread", "threading.Timer",
                                              "_thread.start_new_thread", "multiprocessing.Process",
                                              "torch.multiprocessing.Process", "torch.multiprocessing.spawn",
                                              // Its callbacks run in workers, or when it is iterated.
                                              "torch.utils.data.DataLoader"};
    // Methods of an executor. The receiver's class may be unknown.
    if (name == "?.submit" || name == "?.apply_async" || name.ends_with("Executor.submit") ||
        name.ends_with("Executor.map") || name.ends_with("Pool.map"))
        return true;
    return std::ranges::any_of(kSpawners, [&](std::string_view s) {
        return name == s || (name.starts_with(s) && name.substr(s.size()).starts_with("::"));
    });
}

// Library functions that call the function they are given before they return.
bool calls_at_once(std::string_view name) {
    return name == "at::parallel_for" || name == "std::invoke" || name == "std::apply" ||
           name == "std::for_each" || name == "std::for_each_n" || name == "std::transform" ||
           name == "std::generate" || name == "std::accumulate" || name == "std::call_once" ||
           name == "torch.utils.checkpoint.checkpoint" || name == "map" || name == "builtins.map";
}

// Each body once, in no particular order.
std::vector<const Function*> distinct_bodies(const std::vector<Unit>& units) {
    std::vector<Candidate> kept;
    // `kept` index plus 1 of the first body of each USR. Few USRs have more bodies; `others` holds
    // those.
    BySymbol<std::uint32_t> first;
    std::unordered_map<Identity, std::uint32_t, IdentityHash> others;
    for (const Unit& u : units) {
        for (const Function& f : u.functions) {
            std::uint32_t* number = &first[f.usr];
            if (*number != 0 && identity_of(*kept[*number - 1].body) != identity_of(f))
                number = &others[identity_of(f)];
            const Candidate candidate{&f, &u};
            if (*number == 0) {
                kept.push_back(candidate);
                *number = static_cast<std::uint32_t>(kept.size());
            } else if (is_better(candidate, kept[*number - 1])) {
                kept[*number - 1] = candidate;
            }
        }
    }
    std::vector<const Function*> bodies;
    bodies.reserve(kept.size());
    for (const Candidate& candidate : kept) bodies.push_back(candidate.body);
    return bodies;
}

// By file name, line, column, display name.
void sort_by_place(std::vector<const Function*>& functions) {
    std::vector<Symbol> files;
    BySymbol<std::uint32_t> rank;
    for (const Function* f : functions)
        if (std::exchange(rank[f->span.file], 1) == 0) files.push_back(f->span.file);
    std::ranges::sort(files, {}, [](Symbol s) { return s.str(); });
    for (std::uint32_t i = 0; i < files.size(); ++i) rank[files[i]] = i;

    struct Key {
        std::uint64_t place = 0;
        std::uint32_t column = 0;
        const Function* function = nullptr;
    };
    std::vector<Key> keys;
    keys.reserve(functions.size());
    for (const Function* f : functions)
        keys.push_back({std::uint64_t{rank[f->span.file]} << 32 | f->span.line, f->span.column, f});
    const auto precedes = [](const Key& a, const Key& b) {
        if (a.place != b.place) return a.place < b.place;
        if (a.column != b.column) return a.column < b.column;
        return std::pair(a.function->display.str(), a.function->usr.str()) <
               std::pair(b.function->display.str(), b.function->usr.str());
    };
    if (std::ranges::is_sorted(keys, precedes)) return;  // most Python trees
    std::ranges::sort(keys, precedes);
    for (std::size_t i = 0; i < keys.size(); ++i) functions[i] = keys[i].function;
}

// Calls of modules whose class the call does not name: link_values() puts the bodies that may run into `lambdas`.
bool calls_any_module(std::string_view name) {
    return name == "?.__call__" || name == "torch.nn.Sequential.forward" || name == "torch.nn.Module.forward";
}

}  // namespace

Graph::Graph(const std::vector<Unit>& units) : functions_(distinct_bodies(units)) {
    sort_by_place(functions_);
    auto owners = in_background([this] { index_owners(); });
    number_functions(units);
    index_bodies();
    resolve_calls();
    index_callers();
    owners.get();
}

void Graph::index_owners() {
    call_ranges_.reserve(functions_.size());
    for (std::uint32_t i = 0; i < functions_.size(); ++i)
        if (!functions_[i]->calls.empty()) call_ranges_.emplace_back(functions_[i]->calls.data(), i);
    std::ranges::sort(call_ranges_, std::less<>{}, [](const auto& range) { return range.first; });
}

void Graph::number_functions(const std::vector<Unit>& units) {
    std::uint32_t total = 0;
    for (const Unit& u : units) {
        const auto count = static_cast<std::uint32_t>(u.functions.size());
        if (count > 0) stretches_.push_back({u.functions.data(), count, std::exchange(total, total + count)});
    }
    std::ranges::sort(stretches_, std::less<>{}, &Stretch::first);
    index_.assign(total, kNobody);
    for (std::uint32_t i = 0; i < functions_.size(); ++i) index_[*place_of(*functions_[i])] = i;
}

bool Graph::Stretch::has(const Function& f) const {
    return !std::less<>{}(&f, first) && std::less<>{}(&f, first + count);
}

std::optional<std::size_t> Graph::place_of(const Function& f) const {
    // Most questions are about the unit of the question before.
    thread_local std::size_t last = 0;
    if (last >= stretches_.size() || !stretches_[last].has(f)) {
        const auto after = std::ranges::upper_bound(stretches_, &f, std::less<>{}, &Stretch::first);
        if (after == stretches_.begin() || !std::prev(after)->has(f)) return std::nullopt;
        last = static_cast<std::size_t>(after - stretches_.begin()) - 1;
    }
    const Stretch& unit = stretches_[last];
    return unit.at + static_cast<std::size_t>(&f - unit.first);
}

void Graph::index_bodies() {
    std::vector<std::pair<Symbol, std::uint32_t>> bodies, overriders;
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        const Function& f = *functions_[i];
        if (!f.usr.empty()) bodies.emplace_back(f.usr, i);
        for (const Symbol base : f.overrides) overriders.emplace_back(base, i);
    }
    bodies_ = GroupsBySymbol(bodies);
    overriders_ = GroupsBySymbol(overriders);
}

// Adds the bodies of a USR: the one in the caller's file when there are several, else all of them.
void Graph::add_bodies(const Function& caller, Symbol usr, std::vector<std::uint32_t>& out) const {
    const auto all = bodies_.get(usr);
    if (all.size() > 1) {
        for (const std::uint32_t body : all) {
            if (functions_[body]->span.file != caller.span.file) continue;
            out.push_back(body);
            return;
        }
    }
    out.insert(out.end(), all.begin(), all.end());
}

void Graph::add_overriders(Symbol usr, std::vector<std::uint32_t>& out) const {
    std::vector<Symbol> pending{usr};
    while (!pending.empty() && out.size() < kMaxOverriders) {
        const auto direct = overriders_.get(pending.back());
        pending.pop_back();
        for (const std::uint32_t body : direct) {
            if (out.size() >= kMaxOverriders || std::ranges::find(out, body) != out.end()) continue;
            out.push_back(body);
            pending.push_back(functions_[body]->usr);
        }
    }
}

void Graph::resolve(const Function& caller, const Call& call, std::vector<std::uint32_t>& found) {
    found.clear();
    if (!call.callee.empty()) {
        add_bodies(caller, call.callee, found);
        // Only methods can be overridden; a constructor runs the body of its own class.
        if (call.kind != CallKind::constructor && !overriders_.get(call.callee).empty())
            add_overriders(call.callee, found);
    }
    for (const std::uint32_t body : found) targets_.push_back({.function = body, .sure = found.size() == 1});
    if (call.lambdas.empty()) return;
    const bool spawned = starts_thread(call.name.str());
    const bool at_once = calls_at_once(call.name.str());
    for (const Symbol lambda : call.lambdas) {
        if (lambda == call.callee) continue;  // called by name, and its own receiver
        found.clear();
        add_bodies(caller, lambda, found);
        for (const std::uint32_t body : found)
            targets_.push_back(
                {.function = body, .sure = found.size() == 1 && at_once, .lambda = true, .spawned = spawned});
    }
}

void Graph::resolve_calls() {
    std::size_t total = 0;
    for (const Function* f : functions_) total += f->calls.size();
    first_target_.reserve(total + 1);
    first_call_.reserve(functions_.size());
    std::vector<std::uint32_t> scratch;
    std::vector<std::pair<Symbol, const Call*>> with_callee;
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        const Function& f = *functions_[i];
        first_call_.push_back(static_cast<std::uint32_t>(first_target_.size()));
        first_linked_.push_back(static_cast<std::uint32_t>(linked_calls_.size()));
        for (std::uint32_t c = 0; c < f.calls.size(); ++c) {
            const Call& call = f.calls[c];
            if (!call.callee.empty())
                with_callee.emplace_back(call.callee, &call);
            else if (calls_any_module(call.name.str()))
                for (const Symbol one : call.lambdas) with_callee.emplace_back(one, &call);
            const std::size_t before = targets_.size();
            first_target_.push_back(static_cast<std::uint32_t>(before));
            resolve(f, call, scratch);
            if (targets_.size() > before) linked_calls_.push_back(c);
        }
    }
    first_linked_.push_back(static_cast<std::uint32_t>(linked_calls_.size()));
    first_target_.push_back(static_cast<std::uint32_t>(targets_.size()));
    calls_to_ = GroupsBySymbol(with_callee);
}

void Graph::index_callers() {
    first_caller_.assign(functions_.size() + 1, 0);
    for (const Target& t : targets_) ++first_caller_[t.function + 1];
    for (std::size_t i = 1; i < first_caller_.size(); ++i) first_caller_[i] += first_caller_[i - 1];
    callers_.resize(targets_.size());
    std::vector<std::uint32_t> next(first_caller_.begin(), first_caller_.end() - 1);
    for (std::uint32_t f = 0; f < functions_.size(); ++f)
        for (const std::uint32_t c : linked_calls(f))
            for (const Target& t : targets(f, c)) callers_[next[t.function]++] = {f, c};
}

std::uint32_t Graph::find(Symbol usr) const {
    const auto all = bodies_.get(usr);
    return all.empty() ? kNobody : all.front();
}

std::uint32_t Graph::index_of(const Function& f) const {
    const auto place = place_of(f);
    return place ? index_[*place] : kNobody;
}

std::span<const Target> Graph::targets(std::uint32_t f, std::size_t call) const {
    const std::size_t at = first_call_[f] + call;
    return std::span(targets_).subspan(first_target_[at], first_target_[at + 1] - first_target_[at]);
}

std::span<const std::uint32_t> Graph::linked_calls(std::uint32_t f) const {
    return std::span(linked_calls_).subspan(first_linked_[f], first_linked_[f + 1] - first_linked_[f]);
}

std::span<const CallRef> Graph::callers(std::uint32_t f) const {
    return std::span(callers_).subspan(first_caller_[f], first_caller_[f + 1] - first_caller_[f]);
}

std::span<const Call* const> Graph::calls_to(Symbol usr) const { return calls_to_.get(usr); }

std::uint32_t Graph::owner(const Call& call) const {
    auto after =
        std::upper_bound(call_ranges_.begin(), call_ranges_.end(), &call,
                         [](const Call* c, const auto& range) { return std::less<>{}(c, range.first); });
    if (after == call_ranges_.begin()) return kNobody;
    const std::uint32_t f = std::prev(after)->second;
    const auto& calls = functions_[f]->calls;
    return std::less<>{}(&call, calls.data() + calls.size()) ? f : kNobody;
}

}  // namespace mp::lint
