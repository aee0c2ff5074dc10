#include <gtest/gtest.h>

#include "tests/analyzer/clang/flow_fixture.hpp"

namespace mp::lint::test {
namespace {

const char* const kWarpSum = R"(
    template <typename T> T warp_total(T v) {
        for (int m = 16; m > 0; m >>= 1) v += __shfl_xor_sync(~0u, v, m); return v; }
    template <typename T> T block_total(T v) { static T lanes[32]; v = warp_total(v);
        if (threadIdx.x == 0) lanes[blockIdx.x] = v; v = threadIdx.x < 8 ? lanes[threadIdx.x] : T(0.f);
        return warp_total(v); })";

TEST(Statistics, ALayerNormIsReadFromItsArithmetic) {
    const Parsed p(kWarpSum + std::string(R"(void f(const half* x, int n, float e) {
        float a = 0.f; for (int i = 0; i < n; ++i) a += (float)x[i];
        static float shared_a, shared_b;
        a = block_total(a);
        if (threadIdx.x == 0) shared_a = a / n;
        probe(a); probe(shared_a);
        float b = 0.f; for (int i = 0; i < n; ++i) { float d = (float)x[i] - shared_a; b += d * d; }
        b = block_total(b); probe(b); probe(b / n + e);
        if (threadIdx.x == 0) shared_b = rsqrtf(b / n + e);
        probe(__float2half(shared_b)); })"));
    EXPECT_EQ(p.stat("f", 0), Stat::sum);
    EXPECT_EQ(p.stat("f", 1), Stat::mean);
    EXPECT_EQ(p.stat("f", 2), Stat::sum_of_squares);
    EXPECT_EQ(p.stat("f", 3), Stat::variance);
    EXPECT_EQ(p.stat("f", 4), Stat::rstd);
}

TEST(Statistics, TheDifferenceOfMomentsIsAVariance) {
    const Parsed p(R"(void f(const float* x, int n) {
        float s = 0.f, q = 0.f; for (int i = 0; i < n; ++i) { s += x[i]; q += x[i] * x[i]; }
        float sums[2]; sums[0] = s; sums[1] = q;
        const float mean = sums[0] / n; const float inv = 1.f / n;
        probe(sums[1] / n - mean * mean); probe(s * inv); probe(1.f / sqrtf(q / n)); probe(sums[0]); })");
    EXPECT_EQ(p.stat("f", 0), Stat::variance);
    EXPECT_EQ(p.stat("f", 1), Stat::mean);
    EXPECT_EQ(p.stat("f", 2), Stat::rstd);
    EXPECT_EQ(p.stat("f", 3), Stat::sum);
}

TEST(Statistics, ACountMayHaveAnEpsilon) {
    const Parsed p(R"(void f(const float* x, int n, float w) {
        float q = 0.f; for (int i = 0; i < n; ++i) q += x[i] * x[i];
        probe(q / ((float)n + 1e-5f)); probe(q / (1e-5f + n)); probe(q / (w + 1e-5f)); })");
    EXPECT_EQ(p.stat("f", 0), Stat::variance);
    EXPECT_EQ(p.stat("f", 1), Stat::variance);
    EXPECT_EQ(p.stat("f", 2), Stat::none);
}

TEST(Statistics, ASumOfSquaresMayStartInTheReduction) {
    const Parsed p(kWarpSum +
                   std::string("void f(float x) { probe(warp_total(x * x)); probe(warp_total(x)); }"));
    EXPECT_EQ(p.stat("f", 0), Stat::sum_of_squares);
    EXPECT_EQ(p.stat("f", 1), Stat::sum);
}

TEST(Statistics, OneVariableMayMeanTwoThings) {
    const Parsed p(R"(void f(const float* x, int n) {
        float v = 0.f; for (int i = 0; i < n; ++i) v += x[i];
        const float mean = v / n;
        v = 0.f; for (int i = 0; i < n; ++i) v += (x[i] - mean) * (x[i] - mean);
        probe(mean); probe(v); v /= n; probe(v); })");
    EXPECT_EQ(p.stat("f", 0), Stat::mean);
    EXPECT_EQ(p.stat("f", 1), Stat::sum_of_squares);
    EXPECT_EQ(p.stat("f", 2), Stat::variance);
}

TEST(Statistics, NamesMeanNothing) {
    const Parsed p(
        R"(float variance_of(const float*); void f(const float* x, float variance, float scale, int n) {
        float mean = x[0]; float sum = 0.f; for (int i = 0; i < n; ++i) sum += x[i];
        probe(variance); probe(mean); probe(rsqrtf(variance)); probe(sum * scale); probe(x[0] / sum);
        probe(sum / scale); })");
    for (int i = 0; i < 6; ++i) EXPECT_EQ(p.stat("f", i), Stat::none) << i;
}

}  // namespace
}  // namespace mp::lint::test
