#pragma once

// The call graph of all units: each function body once, and for every call the bodies it can reach.

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/by_symbol.hpp"

namespace mp::lint {

struct CallRef {
    std::uint32_t function = 0;
    std::uint32_t call = 0;
};

struct Target {
    std::uint32_t function = 0;
    bool sure = true;      // the call certainly reaches this body, and no other
    bool lambda = false;   // it is passed to the call, which may run it
    bool spawned = false;  // ... on another thread, whose autocast state starts fresh
};

class Graph {
public:
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

    // Only the first overriders by position are followed when a method has more.
    static constexpr std::size_t kMaxOverriders = 64;

    Graph() = default;
    explicit Graph(const std::vector<Unit>& units);

    std::size_t size() const { return functions_.size(); }
    const Function& function(std::uint32_t f) const { return *functions_[f]; }
    std::span<const Function* const> functions() const { return functions_; }
    std::uint32_t find(Symbol usr) const;           // kNobody when there is no body
    std::uint32_t index_of(const Function&) const;  // kNobody for a function that is not in the graph

    std::span<const Target> targets(std::uint32_t f, std::size_t call) const;
    // The calls of a function that have targets, in order.
    std::span<const std::uint32_t> linked_calls(std::uint32_t f) const;
    std::span<const CallRef> callers(std::uint32_t f) const;
    // Every call that names this USR, with or without a body.
    std::span<const Call* const> calls_to(Symbol usr) const;
    // kNobody for a call of a function that is not in the graph.
    std::uint32_t owner(const Call&) const;

private:
    void number_functions(const std::vector<Unit>& units);
    void index_bodies();
    void resolve_calls();
    void resolve(const Function& caller, const Call&, std::vector<std::uint32_t>& scratch);
    void add_bodies(const Function& caller, Symbol usr, std::vector<std::uint32_t>& out) const;
    void add_overriders(Symbol usr, std::vector<std::uint32_t>& out) const;
    void index_callers();
    void index_owners();
    std::optional<std::size_t> place_of(const Function&) const;  // in index_

    std::vector<const Function*> functions_;    // by file, line, display
    GroupsBySymbol<std::uint32_t> bodies_;      // by usr
    GroupsBySymbol<std::uint32_t> overriders_;  // direct ones
    // The functions of one unit, and the index in index_ of the number of the first.
    struct Stretch {
        const Function* first = nullptr;
        std::uint32_t count = 0;
        std::uint32_t at = 0;
        bool has(const Function&) const;
    };
    std::vector<Stretch> stretches_;           // by address
    std::vector<std::uint32_t> index_;         // kNobody where the body of another unit is kept
    std::vector<std::uint32_t> first_call_;    // per function: index of its call 0 in first_target_
    std::vector<std::uint32_t> first_target_;  // per call, and one past the last
    std::vector<Target> targets_;
    std::vector<std::uint32_t> linked_calls_;
    std::vector<std::uint32_t> first_linked_;  // per function, and one past the last
    std::vector<std::uint32_t> first_caller_;
    std::vector<CallRef> callers_;
    GroupsBySymbol<const Call*> calls_to_;
    std::vector<std::pair<const Call*, std::uint32_t>> call_ranges_;  // first call of each function
};

}  // namespace mp::lint
