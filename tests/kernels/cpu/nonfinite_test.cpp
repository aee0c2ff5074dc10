#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

template <class Raw>
void check_every_pattern(DType dtype) {
    const std::size_t n = std::size_t{1} << (8 * sizeof(Raw));
    for (std::size_t i = 0; i < n; ++i) {
        const auto pattern = static_cast<Raw>(i);
        const bool expected = !std::isfinite(oracle::value(dtype, &pattern, 0));
        ASSERT_EQ(any_nonfinite(contiguous(&pattern, dtype, 1)), expected)
            << name_of(dtype) << " pattern " << i;
    }
}

TEST(AnyNonfinite, EveryPatternOfTheShortFormats) {
    with_each_set([] {
        check_every_pattern<std::uint8_t>(DType::e4m3);
        check_every_pattern<std::uint8_t>(DType::e5m2);
        check_every_pattern<std::uint16_t>(DType::fp16);
        check_every_pattern<std::uint16_t>(DType::bf16);
    });
}

TEST(AnyNonfinite, OneAnywhereIsFound) {
    std::vector<double> values = oracle::normal(2 * kBlock + 45, 61);
    const auto n = static_cast<std::int64_t>(values.size());
    for (const DType dtype : kMeasured) {
        const auto without = oracle::stored(dtype, values);
        with_each_set(
            [&] { EXPECT_FALSE(any_nonfinite(contiguous(without.data(), dtype, n))) << name_of(dtype); });
        for (const std::size_t at : {std::size_t{0}, kBlock - 1, kBlock, 2 * kBlock + 31, 2 * kBlock + 44})
            for (const double bad :
                 {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
                std::vector<double> with = values;
                with[at] = bad;
                const auto bytes = oracle::stored(dtype, with);
                with_each_set([&] { EXPECT_TRUE(any_nonfinite(contiguous(bytes.data(), dtype, n))) << at; });
            }
    }
}

TEST(AnyNonfinite, LooksAtTheElementsOfAViewAndAtNoOthers) {
    float rows[4][3] = {};
    rows[2][2] = std::numeric_limits<float>::infinity();
    TensorView columns = contiguous(rows, DType::fp32, 4);
    columns.dims = 2;
    columns.sizes[1] = 2;
    columns.strides[0] = 3;
    columns.strides[1] = 1;
    EXPECT_FALSE(any_nonfinite(columns));
    columns.sizes[1] = 3;
    EXPECT_TRUE(any_nonfinite(columns));
}

TEST(AnyNonfinite, WhatHasNoneSaysNo) {
    const float x = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(any_nonfinite(contiguous(&x, DType::int32, 1)));
    EXPECT_FALSE(any_nonfinite(contiguous(nullptr, DType::fp32, 1)));
    EXPECT_FALSE(any_nonfinite(contiguous(&x, DType::fp32, 0)));
}

}  // namespace
}  // namespace mp::cpu
