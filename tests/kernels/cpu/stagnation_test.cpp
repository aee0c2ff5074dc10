#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

TEST(StagnationKernel, TellsSwallowedFromUnmeant) {
    //                                 moves   swallowed  unmeant  unmoved though large  infinite
    const std::vector<double> before = {1.0, 1.0, 1.0, 1.0, 1.0};
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> after = {1.0625, 1.0, 1.0, 1.0, infinity};
    const std::vector<double> moved = {1.0625, 1.001, 1.0, 1.5, 2.0};
    const auto b = oracle::stored(DType::bf16, before), a = oracle::stored(DType::bf16, after);
    const auto from = oracle::stored(DType::fp64, before), to = oracle::stored(DType::fp64, moved);
    Stagnation got;
    ASSERT_TRUE(stagnation(contiguous(b.data(), DType::bf16, 5), contiguous(a.data(), DType::bf16, 5),
                           contiguous(from.data(), DType::fp64, 5), contiguous(to.data(), DType::fp64, 5),
                           got));
    EXPECT_EQ(got.count, 5u);
    EXPECT_EQ(got.meant_to_move, 3u);
    EXPECT_EQ(got.unmoved, 2u);
    EXPECT_EQ(got.below_half_ulp, 1u);
    EXPECT_NEAR(got.wanted_squares, 0.0625 * 0.0625 + 1e-6 + 0.25, 1e-12);
    EXPECT_NEAR(got.moved_dot, 0.0625 * 0.0625, 1e-12);
}

// Weights of N(0, 0.02) and Adam-like steps of one learning rate: the share of updates that bf16 does not store.
TEST(StagnationKernel, StagnationOfBf16Weights) {
    constexpr std::int64_t kCount = 100000;
    const std::pair<double, double> expected[] = {{1e-4, 0.12}, {3e-5, 0.70}, {1e-5, 0.84}, {1e-6, 0.98}};
    const auto b = oracle::stored(DType::bf16, oracle::normal(kCount, 51, 0, 0.02));
    const auto before = oracle::values(DType::bf16, b.data(), kCount);
    const auto direction = oracle::normal(kCount, 52);
    for (const auto& [rate, share] : expected) {
        std::vector<double> moved = before;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= std::copysign(rate, direction[i]);
        const auto a = oracle::stored(DType::bf16, moved);
        const auto from = oracle::stored(DType::fp64, before), to = oracle::stored(DType::fp64, moved);
        Stagnation got;
        ASSERT_TRUE(stagnation(
            contiguous(b.data(), DType::bf16, kCount), contiguous(a.data(), DType::bf16, kCount),
            contiguous(from.data(), DType::fp64, kCount), contiguous(to.data(), DType::fp64, kCount), got));
        EXPECT_NEAR(static_cast<double>(got.unmoved) / kCount, share, 0.16) << rate;
        EXPECT_NEAR(static_cast<double>(got.below_half_ulp), static_cast<double>(got.unmoved), 0.01 * kCount);
    }
}

// Some loads make numbers of NaN and infinity, in whole groups and in the rest of a block.
TEST(StagnationKernel, OmitsNonfiniteOfEveryFormat) {
    constexpr std::int64_t kCount = 40;
    std::vector<double> before(kCount, 1.0), after(kCount, 2.0);
    before[3] = after[38] = std::numeric_limits<double>::quiet_NaN();
    before[4] = after[39] = std::numeric_limits<double>::infinity();
    for (const DType dtype : kMeasured) {
        const auto b = oracle::stored(dtype, before), a = oracle::stored(dtype, after);
        with_each_set([&] {
            const TensorView none;
            Stagnation got;
            ASSERT_TRUE(stagnation(contiguous(b.data(), dtype, kCount), contiguous(a.data(), dtype, kCount),
                                   none, none, got));
            EXPECT_EQ(got.meant_to_move, 36u) << name_of(dtype);
        });
    }
}

TEST(StagnationKernel, WithoutATwinEveryElementWasMeantToMove) {
    const float before[3] = {1, 2, 3}, after[3] = {1, 2, 4};
    Stagnation got;
    const TensorView none;
    ASSERT_TRUE(
        stagnation(contiguous(before, DType::fp32, 3), contiguous(after, DType::fp32, 3), none, none, got));
    EXPECT_EQ(got.meant_to_move, 3u);
    EXPECT_EQ(got.unmoved, 2u);
    EXPECT_EQ(got.below_half_ulp, 0u);
    EXPECT_FALSE(
        stagnation(contiguous(before, DType::fp32, 3), contiguous(after, DType::fp32, 2), none, none, got));
}

}  // namespace
}  // namespace mp::cpu
