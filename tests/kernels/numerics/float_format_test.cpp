#include "kernels/numerics/float_format.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/numerics/convert.hpp"

namespace mp {
namespace {

TEST(FloatFormat, OnlyKnownFloatsHaveOne) {
    for (int i = 0; i <= static_cast<int>(kLastDType); ++i) {
        const auto d = static_cast<DType>(i);
        const FloatFormat* format = format_of(d);
        EXPECT_EQ(format != nullptr, is_float(d) && d != DType::lowp) << name_of(d);
        if (format) EXPECT_EQ(format->dtype, d);
    }
}

TEST(FloatFormat, WidthIsThatOfTheStoredPattern) {
    EXPECT_EQ(format_of(DType::fp64)->width(), 64);
    EXPECT_EQ(format_of(DType::fp32)->width(), 32);
    EXPECT_EQ(format_of(DType::tf32)->width(), 19);
    EXPECT_EQ(format_of(DType::bf16)->width(), 16);
    EXPECT_EQ(format_of(DType::e4m3)->width(), 8);
}

// The limits come from the table; so do the conversions, but along another path: they must agree.
TEST(FloatFormat, ThresholdsAreWhereConversionChanges) {
    for (const FloatFormat& f : kFloatFormats) {
        SCOPED_TRACE(name_of(f.dtype));
        EXPECT_EQ(round_to(f, max_finite(f)), max_finite(f));
        EXPECT_EQ(round_to(f, min_subnormal(f)), min_subnormal(f));
        EXPECT_EQ(round_to(f, min_subnormal(f) * 1.5), min_subnormal(f) * 2);
        EXPECT_EQ(round_to(f, 1 + epsilon(f)), 1 + epsilon(f));
        EXPECT_EQ(round_to(f, 1 + unit_roundoff(f)), 1) << "a tie goes to the even 1";
        const auto n = static_cast<double>(first_inexact_integer(f));
        EXPECT_EQ(round_to(f, n - 1), n - 1);
        if (f.dtype == DType::fp64) continue;  // a double cannot hold what would be rounded
        EXPECT_NE(round_to(f, n), n);
        EXPECT_EQ(round_to(f, underflow_threshold(f)), 0);
        EXPECT_EQ(round_to(f, std::nextafter(underflow_threshold(f), 1.0)), min_subnormal(f));
        const double top = overflow_threshold(f);
        EXPECT_EQ(round_to(f, std::nextafter(top, 0.0)), max_finite(f));
        EXPECT_EQ(std::isfinite(round_to(f, top)), !threshold_overflows(f));
        EXPECT_FALSE(std::isfinite(round_to(f, std::nextafter(top, 1e300))));
    }
}

TEST(FloatFormat, Fp64IsNeverOverflowedByADouble) {
    EXPECT_TRUE(std::isinf(overflow_threshold(*format_of(DType::fp64))));
    EXPECT_EQ(underflow_threshold(*format_of(DType::fp64)), 0);
}

}  // namespace
}  // namespace mp
