#include "kernels/numerics/divergence.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/numerics/float_format.hpp"

namespace mp {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Divergence pair(double x, double y) {
    Divergence d;
    const double e = x - y;
    d.count = d.compared = 1;
    d.differ = x != y;
    d.max_abs = d.abs_e = std::fabs(e);
    d.twin_amax = d.abs_y = std::fabs(y);
    d.ee = e * e, d.yy = y * y, d.xx = x * x, d.xy = x * y, d.e = e;
    if (x == 0 && y != 0) d.flushed = 1, d.flushed_abs = std::fabs(y);
    return d;
}

TEST(Divergence, MeasuresOfTwoPairs) {
    Divergence d = pair(3, 4);
    d.merge(pair(0, 3));
    EXPECT_EQ(relative_l2(d), std::sqrt(10.0 / 25));
    EXPECT_NEAR(gain_bias(d), (12.0 - 25) / 25, 1e-15);
    EXPECT_EQ(d.max_abs, 3);
    EXPECT_EQ(d.twin_amax, 4);
}

TEST(Divergence, NothingOverNothing) {
    const Divergence none, equal = pair(0, 0);
    for (const Divergence& d : {none, equal}) {
        EXPECT_EQ(relative_l2(d), 0);
        EXPECT_EQ(gain_bias(d), 0);
    }
}

TEST(Divergence, ErrorOverAReferenceOfZero) {
    const Divergence d = pair(1, 0);
    EXPECT_EQ(relative_l2(d), kInf);
}

TEST(Divergence, MergeAddsCountsAndKeepsExtremes) {
    Divergence a = pair(1, 1), b = pair(2, 4);
    a.ulp_max = 3, b.ulp_max = 7;
    a.nonfinite_both = 1, b.nonfinite_both = 2;
    a.nonfinite_real = 3, b.nonfinite_real = 4;
    a.nonfinite_twin = 5, b.nonfinite_twin = 6;
    a.ulp_above_one = 7, b.ulp_above_one = 8;
    a.merge(b);
    EXPECT_EQ(a.count, 2u);
    EXPECT_EQ(a.compared, 2u);
    EXPECT_EQ(a.differ, 1u);
    EXPECT_EQ(a.nonfinite_both, 3u);
    EXPECT_EQ(a.nonfinite_real, 7u);
    EXPECT_EQ(a.nonfinite_twin, 11u);
    EXPECT_EQ(a.ulp_above_one, 15u);
    EXPECT_EQ(a.ulp_max, 7);
    EXPECT_EQ(a.abs_y, 5);
    EXPECT_EQ(a.ee, 4);
    EXPECT_EQ(a.xx, 5);
    EXPECT_EQ(a.xy, 9);
    EXPECT_EQ(a.e, -2);
    a.merge({});
    EXPECT_EQ(a.count, 2u);
    EXPECT_EQ(a.yy, 17);
}

TEST(Divergence, FloorsOfTheFormats) {
    EXPECT_NEAR(one_rounding_floor(DType::fp16), 2.08e-4, 0.02e-4);
    EXPECT_NEAR(one_rounding_floor(DType::bf16), 1.66e-3, 0.01e-3);
    EXPECT_NEAR(one_rounding_floor(DType::e4m3), 2.65e-2, 0.02e-2);
    EXPECT_NEAR(one_rounding_floor(DType::e5m2), 5.28e-2, 0.04e-2);
    EXPECT_EQ(one_rounding_floor(DType::int32), 0);
    EXPECT_EQ(floor_ratio(1, DType::unknown), 0);
    EXPECT_NEAR(floor_ratio(2 * one_rounding_floor(DType::bf16), DType::bf16), 2, 1e-15);
}

}  // namespace
}  // namespace mp
