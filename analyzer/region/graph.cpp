#include "analyzer/region/graph.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

namespace mp::lint {
namespace {

// One body: the same instantiation reached through several units. Different programs of one tree
// may each have a `main`, so the place belongs to the identity.
struct Identity {
    Symbol usr;
    Symbol file;
    std::uint32_t line = 0;
    std::uint32_t column = 0;

    friend bool operator==(const Identity&, const Identity&) = default;
};
struct IdentityHash {
    std::size_t operator()(const Identity& i) const {
        const std::uint64_t both =
            (std::uint64_t{i.usr.id()} << 32 | i.file.id()) * 0x9e3779b97f4a7c15u;
        return static_cast<std::size_t>(both ^ (both >> 29) ^ (std::uint64_t{i.line} << 12) ^
                                        i.column);
    }
};

struct Candidate {
    const Function* body = nullptr;
    const Unit* unit = nullptr;
};

// Of two reports of one body, the one from the cleaner unit, then the richer one; ties by path so
// that the order of the units does not matter.
bool is_better(const Candidate& a, const Candidate& b) {
    const auto rank = [](const Candidate& c) {
        return std::tuple(static_cast<int>(c.unit->state),
                          -static_cast<std::ptrdiff_t>(c.body->calls.size() + c.body->casts.size()),
                          c.unit->path.str());
    };
    return rank(a) < rank(b);
}

bool starts_thread(std::string_view name) {
    constexpr std::string_view kSpawners[] = {
        "std::thread",     "std::jthread",         "std::async",       "pthread_create",
        "threading.Thread", "threading.Timer",     "_thread.start_new_thread",
        "multiprocessing.Process", "torch.multiprocessing.Process", "torch.multiprocessing.spawn"};
    // An executor's methods, whatever holds the executor.
    if (name == "?.submit" || name == "?.apply_async" || name.ends_with("Executor.submit") ||
        name.ends_with("Executor.map") || name.ends_with("Pool.map"))
        return true;
    return std::ranges::any_of(kSpawners, [&](std::string_view s) {
        return name == s || (name.starts_with(s) && name.substr(s.size()).starts_with("::"));
    });
}

// Library functions that run what they are given before they return.
bool calls_at_once(std::string_view name) {
    return name == "at::parallel_for" || name == "std::invoke" || name == "std::apply" ||
           name == "std::for_each" || name == "std::for_each_n" || name == "std::transform" ||
           name == "std::generate" || name == "std::accumulate" || name == "std::call_once" ||
           name == "torch.utils.checkpoint.checkpoint" || name == "map" || name == "builtins.map";
}

// By file name, line, column, display name.
void sort_by_place(std::vector<const Function*>& functions) {
    std::vector<Symbol> files;
    for (const Function* f : functions) files.push_back(f->span.file);
    std::ranges::sort(files);
    files.erase(std::unique(files.begin(), files.end()), files.end());
    std::ranges::sort(files, {}, [](Symbol s) { return s.str(); });
    std::unordered_map<Symbol, std::uint32_t> rank;
    for (std::uint32_t i = 0; i < files.size(); ++i) rank.emplace(files[i], i);

    struct Key {
        std::uint64_t place = 0;
        std::uint32_t column = 0;
        const Function* function = nullptr;
    };
    std::vector<Key> keys;
    keys.reserve(functions.size());
    for (const Function* f : functions)
        keys.push_back({std::uint64_t{rank[f->span.file]} << 32 | f->span.line, f->span.column, f});
    std::ranges::sort(keys, [](const Key& a, const Key& b) {
        if (a.place != b.place) return a.place < b.place;
        if (a.column != b.column) return a.column < b.column;
        return std::pair(a.function->display.str(), a.function->usr.str()) <
               std::pair(b.function->display.str(), b.function->usr.str());
    });
    for (std::size_t i = 0; i < keys.size(); ++i) functions[i] = keys[i].function;
}

}  // namespace

Graph::Graph(const std::vector<Unit>& units) {
    collect(units);
    index_overriders();
    resolve_calls();
    index_callers();
    index_calls_to();
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
    sort_by_place(functions_);
    index_.reserve(functions_.size());
    bodies_.reserve(functions_.size());
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        index_.emplace(functions_[i], i);
        if (!functions_[i]->usr.empty()) body_list_.push_back(i);
    }
    std::ranges::sort(body_list_, {}, [&](std::uint32_t i) {
        return std::pair(functions_[i]->usr.id(), i);
    });
    for (std::uint32_t at = 0; at < body_list_.size(); ++at) {
        const auto [entry, is_new] =
            bodies_.try_emplace(functions_[body_list_[at]]->usr, Range{at, 0});
        ++entry->second.count;
    }
}

std::span<const std::uint32_t> Graph::bodies(Symbol usr) const {
    const auto found = bodies_.find(usr);
    if (found == bodies_.end()) return {};
    return std::span(body_list_).subspan(found->second.first, found->second.count);
}

void Graph::index_overriders() {
    for (std::uint32_t i = 0; i < functions_.size(); ++i)
        for (const Symbol base : functions_[i]->overrides) overriders_[base].push_back(i);
}

// In the caller's own file when several bodies share a USR; else all of them.
void Graph::add_bodies(const Function& caller, Symbol usr, std::vector<std::uint32_t>& out) const {
    const auto all = bodies(usr);
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

void Graph::resolve(const Function& caller, const Call& call, std::vector<std::uint32_t>& found) {
    found.clear();
    if (!call.callee.empty()) {
        add_bodies(caller, call.callee, found);
        // Only methods can be overridden, and a constructor runs its own class's body.
        if (call.kind != CallKind::constructor && !overriders_.empty() &&
            overriders_.contains(call.callee))
            add_overriders(call.callee, found);
    }
    for (const std::uint32_t body : found)
        targets_.push_back({.function = body, .sure = found.size() == 1});
    if (call.lambdas.empty()) return;
    const bool spawned = starts_thread(call.name.str());
    const bool at_once = calls_at_once(call.name.str());
    for (const Symbol lambda : call.lambdas) {
        if (lambda == call.callee) continue;  // called by name, and its own receiver
        found.clear();
        add_bodies(caller, lambda, found);
        for (const std::uint32_t body : found)
            targets_.push_back({.function = body,
                                .sure = found.size() == 1 && at_once,
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
    std::vector<std::uint32_t> scratch;
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        const Function& f = *functions_[i];
        first_call_.push_back(static_cast<std::uint32_t>(first_target_.size()));
        if (!f.calls.empty()) call_ranges_.emplace_back(f.calls.data(), i);
        for (const Call& call : f.calls) {
            first_target_.push_back(static_cast<std::uint32_t>(targets_.size()));
            resolve(f, call, scratch);
        }
    }
    first_target_.push_back(static_cast<std::uint32_t>(targets_.size()));
    std::ranges::sort(call_ranges_, std::less<>{}, [](const auto& range) { return range.first; });
}

void Graph::index_calls_to() {
    std::uint32_t total = 0;
    for (const Function* f : functions_)
        for (const Call& call : f->calls)
            if (!call.callee.empty()) ++calls_to_[call.callee].count;
    for (auto& [usr, range] : calls_to_) {
        range.first = total;
        total += std::exchange(range.count, 0);
    }
    call_list_.resize(total);
    for (const Function* f : functions_)
        for (const Call& call : f->calls) {
            if (call.callee.empty()) continue;
            Range& range = calls_to_[call.callee];
            call_list_[range.first + range.count++] = &call;
        }
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
    const auto all = bodies(usr);
    return all.empty() ? kNobody : all.front();
}

std::uint32_t Graph::index_of(const Function& f) const {
    const auto found = index_.find(&f);
    return found == index_.end() ? kNobody : found->second;
}

std::span<const Target> Graph::targets(std::uint32_t f, std::size_t call) const {
    const std::size_t at = first_call_[f] + call;
    return std::span(targets_).subspan(first_target_[at],
                                       first_target_[at + 1] - first_target_[at]);
}

std::span<const CallRef> Graph::callers(std::uint32_t f) const {
    return std::span(callers_).subspan(first_caller_[f], first_caller_[f + 1] - first_caller_[f]);
}

std::span<const Call* const> Graph::calls_to(Symbol usr) const {
    const auto found = calls_to_.find(usr);
    if (found == calls_to_.end()) return {};
    return std::span(call_list_).subspan(found->second.first, found->second.count);
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
