#include "analyzer/region/graph.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>

namespace mp::lint {
namespace {

// One body: the same instantiation reached through several units. Different programs of one tree may
// each have a `main`, so the place belongs to the identity.
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

struct Candidate {
    const Function* body = nullptr;
    const Unit* unit = nullptr;
};

// Of two reports of one body, the one from the cleaner unit, then the richer one; ties by path so that
// the order of the units does not matter.
bool is_better(const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& c) {
        return std::tuple(static_cast<int>(c.unit->state),
                          -static_cast<std::ptrdiff_t>(c.body->calls.size() + c.body->casts.size()),
                          c.unit->path.str());
    };
    return rank(a) < rank(b);
}

bool starts_thread(std::string_view name) {
    constexpr std::string_view kSpawners[] = {"std::thread", "std::jthread", "std::async", "pthread_create"};
    return std::ranges::any_of(kSpawners, [&](std::string_view s) {
        return name == s || (name.starts_with(s) && name.substr(s.size()).starts_with("::"));
    });
}

// Library functions that run what they are given before they return.
bool calls_at_once(std::string_view name) {
    return name == "at::parallel_for" || name == "std::invoke" || name == "std::apply" ||
           name == "std::for_each" || name == "std::for_each_n" || name == "std::transform" ||
           name == "std::generate" || name == "std::accumulate" || name == "std::call_once";
}

}  // namespace

Graph::Graph(const std::vector<Unit>& units) {
    collect(units);
    index_overriders();
    resolve_calls();
    index_callers();
}

void Graph::collect(const std::vector<Unit>& units) {
    std::size_t total = 0;
    for (const Unit& u : units) total += u.functions.size();
    std::unordered_map<Identity, Candidate, IdentityHash> kept;
    kept.reserve(total);
    for (const Unit& u : units) {
        for (const Function& f : u.functions) {
            const Identity id{f.usr, f.span.file, f.span.line, f.span.column};
            const Candidate candidate{&f, &u};
            const auto [entry, is_new] = kept.try_emplace(id, candidate);
            if (!is_new && is_better(candidate, entry->second)) entry->second = candidate;
        }
    }
    functions_.reserve(kept.size());
    for (const auto& [id, candidate] : kept) functions_.push_back(candidate.body);
    std::ranges::sort(functions_, [](const Function* a, const Function* b) {
        const auto key = [](const Function* f) {
            return std::tuple(f->span.line, f->span.column, f->display.str(), f->usr.str());
        };
        if (a->span.file != b->span.file) return a->span.file.str() < b->span.file.str();
        return key(a) < key(b);
    });
    index_.reserve(functions_.size());
    bodies_.reserve(functions_.size());
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        index_.emplace(functions_[i], i);
        if (!functions_[i]->usr.empty()) bodies_[functions_[i]->usr].push_back(i);
    }
}

void Graph::index_overriders() {
    for (std::uint32_t i = 0; i < functions_.size(); ++i)
        for (const Symbol base : functions_[i]->overrides) overriders_[base].push_back(i);
}

// In the caller's own file when several bodies share a USR; else all of them.
void Graph::add_bodies(const Function& caller, Symbol usr, std::vector<std::uint32_t>& out) const {
    const auto found = bodies_.find(usr);
    if (found == bodies_.end()) return;
    const auto& all = found->second;
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
        const auto found = overriders_.find(pending.back());
        pending.pop_back();
        if (found == overriders_.end()) continue;
        for (const std::uint32_t body : found->second) {
            if (out.size() >= kMaxOverriders || std::ranges::find(out, body) != out.end()) continue;
            out.push_back(body);
            pending.push_back(functions_[body]->usr);
        }
    }
}

void Graph::resolve(const Function& caller, const Call& call, std::vector<Target>& out) const {
    std::vector<std::uint32_t> bodies;
    if (!call.callee.empty()) {
        add_bodies(caller, call.callee, bodies);
        // Only methods can be overridden, and a constructor runs its own class's body.
        if (call.kind != CallKind::constructor && overriders_.contains(call.callee))
            add_overriders(call.callee, bodies);
    }
    for (const std::uint32_t body : bodies)
        out.push_back({.function = body, .sure = bodies.size() == 1, .lambda = false, .spawned = false});
    const bool spawned = !call.lambdas.empty() && starts_thread(call.name.str());
    for (const Symbol lambda : call.lambdas) {
        bodies.clear();
        add_bodies(caller, lambda, bodies);
        for (const std::uint32_t body : bodies)
            out.push_back({.function = body,
                           .sure = bodies.size() == 1 && calls_at_once(call.name.str()),
                           .lambda = true,
                           .spawned = spawned});
    }
}

void Graph::resolve_calls() {
    std::size_t total = 0;
    for (const Function* f : functions_) total += f->calls.size();
    first_target_.reserve(total + 1);
    first_call_.reserve(functions_.size());
    call_ranges_.reserve(functions_.size());
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        const Function& f = *functions_[i];
        first_call_.push_back(static_cast<std::uint32_t>(first_target_.size()));
        if (!f.calls.empty()) call_ranges_.emplace_back(f.calls.data(), i);
        for (const Call& call : f.calls) {
            first_target_.push_back(static_cast<std::uint32_t>(targets_.size()));
            resolve(f, call, targets_);
            if (!call.callee.empty()) calls_to_[call.callee].push_back(&call);
        }
    }
    first_target_.push_back(static_cast<std::uint32_t>(targets_.size()));
    std::ranges::sort(call_ranges_, std::less<>{}, [](const auto& range) { return range.first; });
}

void Graph::index_callers() {
    first_caller_.assign(functions_.size() + 1, 0);
    for (const Target& t : targets_) ++first_caller_[t.function + 1];
    for (std::size_t i = 1; i < first_caller_.size(); ++i) first_caller_[i] += first_caller_[i - 1];
    callers_.resize(targets_.size());
    std::vector<std::uint32_t> next(first_caller_.begin(), first_caller_.end() - 1);
    for (std::uint32_t f = 0; f < functions_.size(); ++f)
        for (std::uint32_t c = 0; c < functions_[f]->calls.size(); ++c)
            for (const Target& t : targets(f, c)) callers_[next[t.function]++] = {f, c};
}

std::uint32_t Graph::find(Symbol usr) const {
    const auto found = bodies_.find(usr);
    return found == bodies_.end() ? kNobody : found->second.front();
}

std::uint32_t Graph::index_of(const Function& f) const {
    const auto found = index_.find(&f);
    return found == index_.end() ? kNobody : found->second;
}

std::span<const Target> Graph::targets(std::uint32_t f, std::size_t call) const {
    const std::size_t at = first_call_[f] + call;
    return std::span(targets_).subspan(first_target_[at], first_target_[at + 1] - first_target_[at]);
}

std::span<const CallRef> Graph::callers(std::uint32_t f) const {
    return std::span(callers_).subspan(first_caller_[f], first_caller_[f + 1] - first_caller_[f]);
}

std::span<const Call* const> Graph::calls_to(Symbol usr) const {
    const auto found = calls_to_.find(usr);
    if (found == calls_to_.end()) return {};
    return found->second;
}

std::uint32_t Graph::owner(const Call& call) const {
    auto after = std::upper_bound(call_ranges_.begin(), call_ranges_.end(), &call,
                                  [](const Call* c, const auto& range) {
                                      return std::less<>{}(c, range.first);
                                  });
    if (after == call_ranges_.begin()) return kNobody;
    const std::uint32_t f = std::prev(after)->second;
    const auto& calls = functions_[f]->calls;
    return std::less<>{}(&call, calls.data() + calls.size()) ? f : kNobody;
}

}  // namespace mp::lint
