#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

template <class Raw>
std::vector<Raw> every_pattern() {
    std::vector<Raw> all(std::size_t{1} << (8 * sizeof(Raw)));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Raw>(i);
    return all;
}

template <class Raw>
void check_each_alone(DType dtype) {
    for (const Raw pattern : every_pattern<Raw>()) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " pattern " << +pattern);
        check_statistics(dtype, &pattern, 1);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Statistics, EveryEightBitPatternAlone) {
    with_each_set([] {
        check_each_alone<std::uint8_t>(DType::e4m3);
        check_each_alone<std::uint8_t>(DType::e5m2);
    });
}

TEST(Statistics, EverySixteenBitPatternAlone) {
    check_each_alone<std::uint16_t>(DType::fp16);
    check_each_alone<std::uint16_t>(DType::bf16);
}

TEST(Statistics, AllPatternsTogether) {
    with_each_set([] {
        for (const DType dtype : {DType::e4m3, DType::e5m2}) {
            const auto all = every_pattern<std::uint8_t>();
            check_statistics(dtype, all.data(), all.size());
        }
        for (const DType dtype : {DType::fp16, DType::bf16}) {
            const auto all = every_pattern<std::uint16_t>();
            check_statistics(dtype, all.data(), all.size());
        }
    });
}

TEST(Statistics, SizesAroundTheInnerLoopsAndBlocks) {
    with_each_set([] {
        for (const DType dtype : kMeasured) {
            const auto bytes = oracle::stored(dtype, oracle::normal(3 * kBlock + 70, 1));
            for (std::size_t n = 0; n < 70; ++n) check_statistics(dtype, bytes.data(), n);
            for (const std::size_t n : {kBlock - 1, kBlock, kBlock + 1, 2 * kBlock + 33, 3 * kBlock + 70})
                check_statistics(dtype, bytes.data(), n);
        }
    });
}

template <class Raw>
std::vector<unsigned char> random_patterns(std::size_t n) {
    std::mt19937_64 random(7);
    std::vector<unsigned char> bytes(n * sizeof(Raw));
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
    return bytes;
}

TEST(Statistics, RandomPatternsOfFp32) {
    auto bytes = random_patterns<std::uint32_t>(20000);
    with_each_set([&] { check_statistics(DType::fp32, bytes.data(), 20000); });
}

TEST(Statistics, RandomMagnitudesOfFp64) {
    std::mt19937_64 random(9);
    std::uniform_int_distribution<int> exponent(-480, 480);
    std::vector<double> values = oracle::normal(20000, 3);
    for (double& x : values) x = std::ldexp(x, exponent(random));
    values[11] = std::numeric_limits<double>::denorm_min();
    values[12] = -std::numeric_limits<double>::infinity();
    values[5000] = std::numeric_limits<double>::quiet_NaN();
    with_each_set([&] { check_statistics(DType::fp64, values.data(), values.size()); });
}

TEST(Statistics, ASpreadThatCancelsIsMeasuredAgain) {
    std::vector<double> values = oracle::normal(10000, 4, 1e7, 1);
    with_each_set([&] { check_statistics(DType::fp64, values.data(), values.size()); });
    std::vector<double> constant(5000, 0.1);
    TensorStats got;
    ASSERT_TRUE(statistics(contiguous(constant.data(), DType::fp64, 5000), got));
    EXPECT_LE(got.m2, 1e-26);
}

TEST(Statistics, SaturatedSubnormalAndZeroAreCounted) {
    std::vector<double> values(9000, 0.0);
    values[1] = 65504, values[4097] = -65504, values[4098] = 0x1p-24, values[8999] = -0x1.8p-15;
    const auto bytes = oracle::stored(DType::fp16, values);
    TensorStats got;
    ASSERT_TRUE(statistics(contiguous(bytes.data(), DType::fp16, 9000), got));
    EXPECT_EQ(got.saturated, 2u);
    EXPECT_EQ(got.subnormal, 2u);
    EXPECT_EQ(got.zero, 8996u);
    EXPECT_EQ(got.amin, 0x1p-24);
}

TEST(Statistics, AddsToWhatIsThere) {
    const auto bytes = oracle::stored(DType::bf16, oracle::normal(9000, 5));
    TensorStats whole, parts;
    ASSERT_TRUE(statistics(contiguous(bytes.data(), DType::bf16, 9000), whole));
    ASSERT_TRUE(statistics(contiguous(bytes.data(), DType::bf16, 4000), parts));
    ASSERT_TRUE(statistics(contiguous(bytes.data() + 8000, DType::bf16, 5000), parts));
    EXPECT_EQ(parts.count, whole.count);
    EXPECT_NEAR(parts.m2, whole.m2, 2 * kShortSum * whole.m2);
}

TEST(Statistics, WhatIsNotMeasuredIsRefused) {
    const float x = 1;
    TensorStats got;
    EXPECT_FALSE(statistics(contiguous(&x, DType::int32, 1), got));
    EXPECT_FALSE(statistics(contiguous(&x, DType::tf32, 1), got));
    EXPECT_FALSE(statistics(contiguous(&x, DType::unknown, 1), got));
    EXPECT_FALSE(statistics(contiguous(nullptr, DType::fp32, 1), got));
    EXPECT_FALSE(statistics(contiguous(&x, DType::fp32, -1), got));
    TensorView deep = contiguous(&x, DType::fp32, 1);
    deep.dims = kMaxDims + 1;
    EXPECT_FALSE(statistics(deep, got));
    EXPECT_EQ(got.count, 0u);
    EXPECT_TRUE(statistics(contiguous(nullptr, DType::fp32, 0), got));
}

}  // namespace
}  // namespace mp::cpu
