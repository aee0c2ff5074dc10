#pragma once

// The ways of control through the blocks of a function: reachability, dominators and loops.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

// Whether control can go from one block to another, without the block `without`.
bool reaches(const Function&, std::uint32_t from, std::uint32_t to,
             std::uint32_t without = ~std::uint32_t{0});
// Whether control cannot leave the function from the block `from` without passing the block `to`.
bool follows_always(const Function&, std::uint32_t from, std::uint32_t to);

// Dominators and natural loops. Ways that an exception takes do not count.
class ControlFlow {
public:
    static constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};

    ControlFlow() = default;
    explicit ControlFlow(const Function&);

    // Every way to `b` has passed `a`. A block that is not reached dominates itself only.
    bool dominates(std::uint32_t a, std::uint32_t b) const;
    // The nearest block that dominates this one; of the first block itself; kNoBlock where control never comes.
    std::uint32_t dominator(std::uint32_t block) const { return dominator_[block]; }
    // Every way out of the function has passed the block.
    bool is_on_every_way(std::uint32_t block) const { return block < always_.size() && always_[block]; }

    bool is_in_loop(std::uint32_t block) const;
    bool is_in_loop(std::uint32_t block, std::uint32_t head) const;  // the loop of this head; its head too
    // Each round of all loops around the block runs it: no branch goes past it, and none leaves before it ends.
    bool runs_in_each_round(const Function&, std::uint32_t block) const;

private:
    void find_dominators(const Function&);
    void find_loops(const Function&);
    bool is_reached(std::uint32_t block) const { return block == 0 || dominator_[block] != kNoBlock; }
    // The head of the innermost loop around the block, without a loop that the block itself begins.
    std::uint32_t innermost_head(std::uint32_t block) const;

    std::vector<std::vector<std::uint32_t>> before_;  // the blocks that lead to each
    std::vector<std::uint32_t> dominator_;
    std::vector<char> always_;
    std::unordered_map<std::uint32_t, std::vector<char>> loops_;
};

}  // namespace mp::lint
