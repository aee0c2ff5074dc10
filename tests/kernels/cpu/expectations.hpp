#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cpu/blocks.hpp"
#include "tests/kernels/cpu/oracle.hpp"

namespace mp::cpu {

inline constexpr DType kMeasured[] = {DType::fp64, DType::fp32, DType::fp16,
                                      DType::bf16, DType::e4m3, DType::e5m2};

// Runs `check` with each instruction set of this machine, the plain one included.
template <class Check>
void with_each_set(Check&& check) {
    const Kernels* sets[kMaxInstructionSets] = {};
    const int n = available(sets);
    for (int i = 0; i < n; ++i) {
        SCOPED_TRACE(sets[i]->name);
        use(*sets[i]);
        check();
    }
    use(*sets[0]);
}

// What measure.hpp promises of a sum, as a share of the sum of magnitudes: lanes of fp32 start it, unless one of the
// tensors is fp64.
inline constexpr double kShortSum = 1e-6, kLongSum = 1e-13;
inline double promised(DType a, DType b) {
    return a == DType::fp64 || b == DType::fp64 ? kLongSum : kShortSum;
}

struct Close {
    double share = kLongSum;
    void operator()(double got, double expected, double scale, const char* what) const {
        EXPECT_LE(std::fabs(got - expected), share * scale)
            << what << " is " << got << ", should be " << expected;
    }
};

inline void expect_same(const TensorStats& got, const TensorStats& expected, double share = kLongSum) {
    const Close expect_close{share};
    EXPECT_EQ(got.count, expected.count);
    EXPECT_EQ(got.nan, expected.nan);
    EXPECT_EQ(got.pos_inf, expected.pos_inf);
    EXPECT_EQ(got.neg_inf, expected.neg_inf);
    EXPECT_EQ(got.zero, expected.zero);
    EXPECT_EQ(got.subnormal, expected.subnormal);
    EXPECT_EQ(got.saturated, expected.saturated);
    EXPECT_EQ(got.amax, expected.amax);
    EXPECT_EQ(got.amin, expected.amin);
    const auto n = static_cast<double>(expected.finite());
    const double magnitudes = std::sqrt(n * expected.sum_squares);
    expect_close(got.sum, expected.sum, magnitudes, "sum");
    expect_close(got.sum_squares, expected.sum_squares, expected.sum_squares, "sum of squares");
    if (n > 0) expect_close(got.mean, expected.mean, magnitudes / n, "mean");
    const double spread = share == kLongSum ? 1e5 * expected.m2 : 20 * expected.m2;
    expect_close(got.m2, expected.m2, spread + 1e-12 * expected.sum_squares, "m2");
}

inline void expect_same(const Divergence& got, const Divergence& expected, double share = kLongSum) {
    const Close expect_close{share};
    EXPECT_EQ(got.count, expected.count);
    EXPECT_EQ(got.compared, expected.compared);
    EXPECT_EQ(got.nonfinite_both, expected.nonfinite_both);
    EXPECT_EQ(got.nonfinite_real, expected.nonfinite_real);
    EXPECT_EQ(got.nonfinite_twin, expected.nonfinite_twin);
    EXPECT_EQ(got.differ, expected.differ);
    EXPECT_EQ(got.flushed, expected.flushed);
    EXPECT_EQ(got.ulp_above_one, expected.ulp_above_one);
    EXPECT_EQ(got.ulp_max, expected.ulp_max);
    EXPECT_EQ(got.max_abs, expected.max_abs);
    EXPECT_EQ(got.twin_amax, expected.twin_amax);
    expect_close(got.ee, expected.ee, expected.ee, "ee");
    expect_close(got.yy, expected.yy, expected.yy, "yy");
    const double derived = share == kLongSum ? 0 : 4 * expected.yy;
    expect_close(got.xx, expected.xx, expected.xx + derived, "xx");
    expect_close(got.xy, expected.xy, std::sqrt(expected.xx * expected.yy) + derived, "xy");
    expect_close(got.e, expected.e, expected.abs_e, "e");
    expect_close(got.abs_e, expected.abs_e, expected.abs_e, "|e|");
    expect_close(got.abs_y, expected.abs_y, expected.abs_y, "|y|");
    expect_close(got.flushed_abs, expected.flushed_abs, expected.flushed_abs, "flushed");
}

inline void check_statistics(DType dtype, const void* data, std::size_t n) {
    const oracle::Summary expected = oracle::summary(dtype, oracle::values(dtype, data, n));
    TensorStats got;
    ExponentHistogram histogram;
    ASSERT_TRUE(statistics(contiguous(data, dtype, static_cast<std::int64_t>(n)), got, &histogram));
    expect_same(got, expected.stats, promised(dtype, dtype));
    EXPECT_EQ(histogram.bins, expected.histogram.bins);
}

inline void check_divergence(DType dtype, const std::vector<unsigned char>& real, DType twin_dtype,
                             const std::vector<unsigned char>& twin, std::size_t n) {
    const Divergence expected = oracle::paired(dtype, oracle::values(dtype, real.data(), n),
                                               oracle::values(twin_dtype, twin.data(), n));
    Divergence got;
    const auto elements = static_cast<std::int64_t>(n);
    const TensorView reference = contiguous(twin.data(), twin_dtype, elements);
    ASSERT_TRUE(divergence(contiguous(real.data(), dtype, elements), reference, got));
    expect_same(got, expected, promised(dtype, twin_dtype));
}

}  // namespace mp::cpu
