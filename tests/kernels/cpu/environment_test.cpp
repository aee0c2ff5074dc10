#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

#include "tests/kernels/cpu/expectations.hpp"

namespace mp::cpu {
namespace {

TEST(Environment, AProgramThatFlushesSubnormalsChangesNothing) {
    const float x[2] = {1e-40f, 1e-41f}, y[2] = {1e-41f, 1e-41f};
    const unsigned before = _mm_getcsr();
    const unsigned flushing = (before | 0x8040) & ~0x3Fu;  // flush and take as zero, all flags clear
    _mm_setcsr(flushing);
    TensorStats stats;
    Divergence diverged;
    const TensorView real = contiguous(x, DType::fp32, 2), twin = contiguous(y, DType::fp32, 2);
    const bool ok = statistics_and_divergence(real, twin, stats, diverged);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    ASSERT_TRUE(ok);
    EXPECT_EQ(after, flushing);
    EXPECT_EQ(diverged.differ, 1u);
    EXPECT_EQ(stats.subnormal, 2u);
    EXPECT_GT(stats.sum, 0);
}

}  // namespace
}  // namespace mp::cpu
#endif
