#include "runtime/fold/sketches.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mp::trace {
namespace {

constexpr std::uint64_t kRanks = 3, kBlocks = 40, kLength = 1024;

// What rank `rank` saw of block `block` of a sum: rank r sends r + 1, and `off` is added to what is received.
SketchRecord sketch(std::uint64_t rank, std::uint64_t block, double off = 0) {
    SketchRecord r;
    r.op = "all_reduce";
    r.reduction = "sum";
    r.dtype = DType::bf16;
    r.communicator = 7;
    r.ranks = kRanks;
    r.rank = rank;
    r.call = block;
    r.elements = r.length = kLength;
    r.sent = static_cast<double>(rank + 1);
    r.has_received = true;
    r.received = 6 + off;
    r.received_squares = 100;
    return r;
}

RunModel model_of(const SketchTable& table) {
    RunModel m;
    CollectiveTotal& c = m.collectives.emplace_back();
    c.total.op = "all_reduce";
    c.total.reduction = "sum";
    c.total.dtype = DType::bf16;
    c.total.ranks = kRanks;
    table.put(m);
    return m;
}

SketchTable table_of(double off, std::uint64_t ranks = kRanks) {
    SketchTable table;
    for (std::uint64_t rank = 0; rank < ranks; ++rank)
        for (std::uint64_t block = 0; block < kBlocks; ++block)
            table.add(sketch(rank, block, off), Step{2}, {});
    return table;
}

TEST(Sketches, TheErrorIsWhatIsNotTheSumOfWhatWasSent) {
    const CollectiveTotal c = model_of(table_of(0.5)).collectives[0];
    EXPECT_EQ(c.sketched, kBlocks);
    EXPECT_EQ(c.total.compared, kBlocks * kLength);
    EXPECT_EQ(c.total.error_squares, kBlocks * 0.25);
    EXPECT_EQ(c.total.sum_squares, kBlocks * 100.0);
    EXPECT_EQ(c.differing, 0u);
    EXPECT_EQ(model_of(table_of(0)).collectives[0].total.error_squares, 0);
}

TEST(Sketches, TheBlockWithTheLargestErrorIsNamed) {
    SketchTable table;
    for (std::uint64_t rank = 0; rank < kRanks; ++rank)
        for (std::uint64_t block = 0; block < kBlocks; ++block) {
            SketchRecord r = sketch(rank, block, block == 17 || block == 23 ? 2 : block == 3 ? -1 : 0.25);
            r.first = block * kLength;
            r.elements = kBlocks * kLength;
            table.add(r, Step{static_cast<std::int64_t>(block)}, {});
        }
    const CollectiveTotal::WorstBlock worst = model_of(table).collectives[0].worst_block;
    EXPECT_EQ(worst.first, 17 * kLength);
    EXPECT_EQ(worst.length, kLength);
    EXPECT_EQ(worst.elements, kBlocks * kLength);
    EXPECT_EQ(worst.step, Step{17});
    EXPECT_DOUBLE_EQ(worst.share, 4 / (4 + 4 + 1 + 37 * 0.0625));
    EXPECT_EQ(model_of(table_of(0)).collectives[0].worst_block.share, 0);
}

TEST(Sketches, AnAverageIsDividedByTheRanks) {
    SketchTable table;
    for (std::uint64_t rank = 0; rank < kRanks; ++rank)
        for (std::uint64_t block = 0; block < kBlocks; ++block) {
            SketchRecord r = sketch(rank, block);
            r.reduction = "avg";
            r.received = 2;
            table.add(r, Step{0}, {});
        }
    RunModel m = model_of({});
    m.collectives[0].total.reduction = "avg";
    table.put(m);
    EXPECT_EQ(m.collectives[0].sketched, kBlocks);
    EXPECT_EQ(m.collectives[0].total.error_squares, 0);
}

TEST(Sketches, NothingIsSaidWithoutARankOrOfFewBlocks) {
    EXPECT_EQ(model_of(table_of(0.5, 2)).collectives[0].total.compared, 0u);
    SketchTable few;
    for (std::uint64_t rank = 0; rank < kRanks; ++rank)
        for (std::uint64_t block = 0; block < 8; ++block) few.add(sketch(rank, block, 0.5), Step{0}, {});
    EXPECT_EQ(model_of(few).collectives[0].total.compared, 0u);
}

TEST(Sketches, CallsThatDoNotBelongTogetherAreNotCompared) {
    EXPECT_EQ(model_of(table_of(50)).collectives[0].total.compared, 0u) << "far from any rounding";
    SketchTable table;
    for (std::uint64_t rank = 0; rank < kRanks; ++rank)
        for (std::uint64_t block = 0; block < kBlocks; ++block) {
            SketchRecord r = sketch(rank, block, 0.5);
            if (rank == 2) r.elements = 5;
            table.add(r, Step{0}, {});
        }
    EXPECT_EQ(model_of(table).collectives[0].total.compared, 0u);
}

TEST(Sketches, ARankThatReceivedOtherValuesIsNamedInAnyOrder) {
    std::vector<SketchRecord> all;
    for (std::uint64_t rank = 0; rank < kRanks; ++rank)
        for (std::uint64_t block = 0; block < kBlocks; ++block)
            all.push_back(sketch(rank, block, rank == 1 && block >= 38 ? 0.25 : 0));
    SketchTable forward, back, halves, other;
    for (std::size_t i = 0; i < all.size(); ++i) {
        forward.add(all[i], Step{3}, Rank{static_cast<int>(all[i].rank) + 4});
        back.add(all[all.size() - 1 - i], Step{3}, Rank{static_cast<int>(all[all.size() - 1 - i].rank) + 4});
        (i % 2 ? halves : other).add(all[i], Step{3}, Rank{static_cast<int>(all[i].rank) + 4});
    }
    halves.merge(other);
    for (const SketchTable* table : {&forward, &back, &halves}) {
        const CollectiveTotal c = model_of(*table).collectives[0];
        EXPECT_EQ(c.differing, 2u);
        EXPECT_EQ(c.differs_for.rank, Rank{1});
        EXPECT_EQ(c.differs_for.communicator, 7u);
        EXPECT_EQ(c.differs_at.rank, Rank{5}) << "that of the process";
        EXPECT_EQ(c.differs_at.step, Step{3});
        EXPECT_EQ(c.sketched, kBlocks - 2);
    }
}

TEST(Sketches, ValuesThatAreNotFiniteAreLeftOut) {
    SketchTable table = table_of(0);
    SketchRecord lost = sketch(0, 0);
    lost.sent = std::nan("");
    lost.call = 999;
    table.add(lost, Step{0}, {});
    EXPECT_EQ(model_of(table).collectives[0].sketched, kBlocks);
}

}  // namespace
}  // namespace mp::trace
