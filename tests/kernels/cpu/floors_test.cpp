#include <gtest/gtest.h>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

constexpr std::int64_t kCount = 200000;

Divergence of_one_rounding(DType dtype) {
    const std::vector<double> y = oracle::normal(kCount, 21);
    const auto twin = oracle::stored(DType::fp32, y);
    const auto real = oracle::stored(dtype, oracle::values(DType::fp32, twin.data(), y.size()));
    Divergence got;
    EXPECT_TRUE(divergence(contiguous(real.data(), dtype, kCount),
                           contiguous(twin.data(), DType::fp32, kCount), got));
    return got;
}

TEST(Floors, OneRoundingOfNormalValues) {
    const std::pair<DType, double> measured[] = {
        {DType::fp16, 2.08e-4}, {DType::bf16, 1.66e-3}, {DType::e4m3, 2.65e-2}, {DType::e5m2, 5.28e-2}};
    for (const auto& [dtype, floor] : measured) {
        const Divergence d = of_one_rounding(dtype);
        EXPECT_NEAR(relative_l2(d), floor, 0.01 * floor) << name_of(dtype);
        EXPECT_NEAR(floor_ratio(relative_l2(d), dtype), 1, 0.01) << name_of(dtype);
        EXPECT_LE(d.ulp_max, 0.5);
        EXPECT_LT(std::fabs(gain_bias(d)), 0.03 * unit_roundoff(*format_of(dtype)));
    }
}

TEST(Floors, TruncationIsABiasOfGain) {
    std::vector<double> y = oracle::normal(kCount, 22);
    auto twin = oracle::stored(DType::fp32, y);
    std::vector<unsigned char> real(static_cast<std::size_t>(kCount) * 2);
    for (std::size_t i = 0; i < y.size(); ++i) std::memcpy(real.data() + 2 * i, twin.data() + 4 * i + 2, 2);
    Divergence d;
    ASSERT_TRUE(divergence(contiguous(real.data(), DType::bf16, kCount),
                           contiguous(twin.data(), DType::fp32, kCount), d));
    EXPECT_NEAR(gain_bias(d), -2.8e-3, 1e-4);
    EXPECT_GT(floor_ratio(relative_l2(d), DType::bf16), 1.9);
}

}  // namespace
}  // namespace mp::cpu
