#include "analyzer/analyses/control_flow.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

namespace mp::lint::test {
namespace {

using Ways = std::initializer_list<std::initializer_list<std::uint32_t>>;

// Per block, the blocks that it leads to; a block without any leaves the function.
Function function(Ways ways) {
    Function f;
    for (const auto& to : ways) {
        Block& block = f.flow.emplace_back();
        for (const std::uint32_t next : to) block.to.push_back({.to = next, .condition = {}});
        block.leaves = to.size() == 0;
    }
    return f;
}

bool in_each_round(Ways ways, std::uint32_t block) {
    const Function f = function(ways);
    return ControlFlow(f).runs_in_each_round(f, block);
}

TEST(ControlFlow, DominatorsOfADiamond) {
    const Function f = function({{1, 2}, {3}, {3}, {}, {3}});
    const ControlFlow flow(f);
    EXPECT_EQ(flow.dominator(3), 0u);
    EXPECT_TRUE(flow.dominates(0, 3));
    EXPECT_FALSE(flow.dominates(1, 3));
    EXPECT_FALSE(flow.is_on_every_way(1));
    EXPECT_TRUE(flow.is_on_every_way(3));
    EXPECT_EQ(flow.dominator(4), ControlFlow::kNoBlock);
    EXPECT_FALSE(flow.dominates(0, 4));
    EXPECT_TRUE(reaches(f, 0, 3, 1));
    EXPECT_FALSE(reaches(f, 1, 2));
}

TEST(ControlFlow, AFunctionWithoutBranchesIsOneBlock) {
    const ControlFlow flow(Function{});
    EXPECT_TRUE(flow.dominates(0, 0));
    EXPECT_TRUE(flow.runs_in_each_round(Function{}, 0));
    EXPECT_FALSE(flow.is_in_loop(0));
}

TEST(ControlFlow, AnExceptionIsNoWay) {
    Function f = function({{1}, {2, 3}, {4}, {4}, {}});
    f.flow[1].to[1].raises = true;
    const ControlFlow flow(f);
    EXPECT_TRUE(flow.dominates(2, 4));
    EXPECT_EQ(flow.dominator(3), ControlFlow::kNoBlock);
}

// 0, head 1, 2, inner head 3, 4, 5 behind it, 6 after both.
constexpr Ways kNested{{1}, {2, 6}, {3}, {4, 5}, {3}, {1}, {}};

TEST(ControlFlow, LoopsOfALoop) {
    const Function f = function(kNested);
    const ControlFlow flow(f);
    for (const std::uint32_t block : {1u, 2u, 3u, 4u, 5u}) {
        EXPECT_TRUE(flow.is_in_loop(block, 1)) << block;
        EXPECT_EQ(flow.is_in_loop(block, 3), block == 3 || block == 4) << block;
    }
    EXPECT_FALSE(flow.is_in_loop(0));
    EXPECT_FALSE(flow.is_in_loop(6));
    EXPECT_FALSE(flow.is_in_loop(3, 2));
}

TEST(ControlFlow, EachRound) {
    for (const std::uint32_t block : {0u, 2u, 4u, 5u, 6u})
        EXPECT_TRUE(in_each_round(kNested, block)) << block;
    // A branch goes past block 2: `continue`.
    EXPECT_FALSE(in_each_round({{1}, {2, 3}, {4}, {4}, {1, 5}, {}}, 2));
    EXPECT_FALSE(in_each_round({{1}, {2, 5}, {3, 4}, {4}, {1}, {}}, 3));
    // `break` and `return` behind it.
    EXPECT_FALSE(in_each_round({{1}, {2, 4}, {3, 4}, {1}, {}}, 2));
    EXPECT_FALSE(in_each_round({{1}, {2, 4}, {3, 5}, {1}, {}, {}}, 3));
    // The branch is in the outer loop: around the inner one, and away from it.
    EXPECT_FALSE(in_each_round({{1}, {2, 6}, {3, 5}, {4, 5}, {3}, {1}, {}}, 4));
    EXPECT_FALSE(in_each_round({{1}, {2, 6}, {3}, {4, 5}, {3}, {1, 6}, {}}, 4));
}

}  // namespace
}  // namespace mp::lint::test
