#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Each pattern against the value beside it, itself, 0, infinity and NaN.
template <class Raw>
void check_every_pattern(DType dtype) {
    const std::size_t n = std::size_t{1} << (8 * sizeof(Raw));
    std::vector<unsigned char> real(n * sizeof(Raw));
    for (std::size_t i = 0; i < n; ++i) {
        const auto pattern = static_cast<Raw>(i);
        std::memcpy(real.data() + i * sizeof(Raw), &pattern, sizeof(Raw));
    }
    const std::vector<double> x = oracle::values(dtype, real.data(), n);
    for (int variant = 0; variant < 5; ++variant) {
        std::vector<double> y = x;
        for (std::size_t i = 0; i < n; ++i) {
            if (variant == 1) y[i] = x[i] * 1.01 + 1e-9;
            if (variant == 2) y[i] = 0;
            if (variant == 3) y[i] = i % 3 == 0 ? kInf : i % 3 == 1 ? -kInf : kNan;
            if (variant == 4) y[i] = x[(i + 1) % n];
        }
        for (const DType twin : {DType::fp32, DType::fp64})
            check_divergence(dtype, real, twin, oracle::stored(twin, y), n);
    }
}

TEST(DivergenceKernel, EveryPatternOfTheShortFormats) {
    with_each_set([] {
        check_every_pattern<std::uint8_t>(DType::e4m3);
        check_every_pattern<std::uint8_t>(DType::e5m2);
        check_every_pattern<std::uint16_t>(DType::fp16);
        check_every_pattern<std::uint16_t>(DType::bf16);
    });
}

TEST(DivergenceKernel, SizesAroundTheInnerLoopsAndBlocks) {
    with_each_set([] {
        const std::vector<double> y = oracle::normal(2 * kBlock + 70, 1);
        for (const DType dtype : kMeasured)
            for (const DType twin : {DType::fp32, DType::fp64}) {
                const auto real = oracle::stored(dtype, y), other = oracle::stored(twin, y);
                for (std::size_t n = 0; n < 70; ++n) check_divergence(dtype, real, twin, other, n);
                for (const std::size_t n : {kBlock - 1, kBlock, kBlock + 1, 2 * kBlock + 70})
                    check_divergence(dtype, real, twin, other, n);
            }
    });
}

TEST(DivergenceKernel, RareValuesInTheMiddleOfOrdinaryOnes) {
    std::vector<double> x = oracle::normal(9000, 2), y = oracle::normal(9000, 3);
    x[5] = kNan, y[5] = kNan;
    x[6] = kInf, y[6] = kInf;
    x[7] = kInf, y[7] = -kInf;
    x[8] = kInf, y[8] = 70000;
    x[4200] = 0, y[4200] = 1e-30;
    x[4300] = -0.0, y[4300] = 0.0;
    x[4400] = 0x1p-24, y[4400] = 0x1p-25;
    y[8999] = 1e30;
    with_each_set([&] {
        for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32})
            check_divergence(dtype, oracle::stored(dtype, x), DType::fp32, oracle::stored(DType::fp32, y),
                             9000);
    });
}

TEST(DivergenceKernel, UlpsOfFp64ReachItsSubnormals) {
    const std::vector<double> x = {0x1p-1074, 3 * 0x1p-1074, 1, 0x1.fffffffffffffp1023, 1e-300};
    const std::vector<double> y = {0, 0x1p-1074, 1 + 0x1p-52, 0x1.ffffffffffffep1023, 1e-300};
    Divergence got;
    ASSERT_TRUE(divergence(contiguous(x.data(), DType::fp64, 3), contiguous(y.data(), DType::fp64, 3), got));
    EXPECT_EQ(got.ulp_max, 2);
    EXPECT_EQ(got.ulp_above_one, 1u);
    Divergence top;
    ASSERT_TRUE(divergence(contiguous(&x[3], DType::fp64, 1), contiguous(&y[3], DType::fp64, 1), top));
    EXPECT_EQ(top.ulp_max, 1);
}

TEST(DivergenceKernel, WhatCannotBeComparedIsRefused) {
    const float x[2] = {1, 2};
    Divergence got;
    TensorStats stats;
    const TensorView two = contiguous(x, DType::fp32, 2), one = contiguous(x, DType::fp32, 1);
    EXPECT_FALSE(divergence(two, one, got));
    EXPECT_FALSE(divergence(two, contiguous(x, DType::bf16, 2), got));
    EXPECT_FALSE(divergence(contiguous(x, DType::int32, 2), two, got));
    EXPECT_FALSE(statistics_and_divergence(two, one, stats, got));
    EXPECT_EQ(got.count + stats.count, 0u);
}

TEST(DivergenceKernel, BothAtOnceIsEachAlone) {
    const std::vector<double> y = oracle::normal(9001, 6);
    const auto real = oracle::stored(DType::bf16, y), twin = oracle::stored(DType::fp32, y);
    const TensorView x = contiguous(real.data(), DType::bf16, 9001),
                     r = contiguous(twin.data(), DType::fp32, 9001);
    TensorStats both_stats, stats;
    Divergence both, alone;
    ASSERT_TRUE(statistics_and_divergence(x, r, both_stats, both));
    ASSERT_TRUE(statistics(x, stats));
    ASSERT_TRUE(divergence(x, r, alone));
    EXPECT_EQ(both_stats.m2, stats.m2);
    EXPECT_EQ(both.ee, alone.ee);
    EXPECT_EQ(both.differ, alone.differ);
}

}  // namespace
}  // namespace mp::cpu
