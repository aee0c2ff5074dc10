#include <gtest/gtest.h>

#include "tests/analyzer/clang/flow_fixture.hpp"

namespace mp::lint::test {
namespace {

TEST(Loops, CountsConstantTripsOfNestedLoops) {
    const Parsed p("void f() { for (int i = 0; i < 10; i += 3) for (int j = 8; j >= 1; --j) probe(i + j); }");
    const LoopsAround around = p.loops("f");
    EXPECT_EQ(around.depth, 2);
    EXPECT_EQ(around.trips, 4u * 8u);
    EXPECT_FALSE(around.halving);
}

TEST(Loops, TemplateConstantsAndConstLocalsAreBounds) {
    const Parsed p(
        R"(template <int N> void f() { const int half = N / 2; for (int i = 0; i < half; ++i) probe(i); }
                      template void f<64>();)");
    EXPECT_EQ(p.loops("f").trips, 32u);
}

TEST(Loops, GridStrideIsNotAConstant) {
    const Parsed p("void f(int n) { for (int i = blockIdx.x; i < n; i += gridDim.x) probe(i); }");
    EXPECT_EQ(p.loops("f").depth, 1);
    EXPECT_EQ(p.loops("f").trips, 0u);
}

TEST(Loops, ACounterThatTheBodyMovesHasNoConstantTrips) {
    const Parsed p("void f(bool b) { for (int i = 0; i < 8; ++i) { if (b) ++i; probe(i); } }");
    EXPECT_EQ(p.loops("f").trips, 0u);
}

TEST(Loops, HalvingAndDoublingAreTrees) {
    const Parsed p(R"(void f() { for (int s = 16; s > 0; s >>= 1) probe(s); }
                      void g() { for (int s = 1; s < 32; s *= 2) probe(s); }
                      void h(unsigned s) { while (s > 0) { probe(s); s /= 2; } }
                      void k() { for (int s = 0; s < 5; ++s) probe(s); })");
    EXPECT_TRUE(p.loops("f").halving);
    EXPECT_EQ(p.loops("f").trips, 5u);
    EXPECT_TRUE(p.loops("g").halving);
    EXPECT_EQ(p.loops("g").trips, 5u);
    EXPECT_TRUE(p.loops("h").halving);
    EXPECT_FALSE(p.loops("k").halving);
}

TEST(Loops, WhatRunsOnceIsNotInALoop) {
    const Parsed p(R"(void f() { do { probe(1); } while (0); }
                      int n(); void g() { for (int i = (probe(2), 0); i < n(); ++i) {} })");
    EXPECT_EQ(p.loops("f").depth, 0);
    EXPECT_EQ(p.loops("g").depth, 0);
}

TEST(Indices, PositionsAndCountersAreIndices) {
    const Parsed p(R"(void f(const int* data, int n) {
        int idx = blockIdx.x * blockDim.x + threadIdx.x;
        probe(idx); probe(idx % 4); probe(data[idx]); probe(n);
        for (int i = 0; i < n; ++i) probe(i * 2);
        int count = 0; while (count < n) ++count; probe(count); })");
    EXPECT_TRUE(p.is_index("f", 0));
    EXPECT_TRUE(p.is_index("f", 1));
    EXPECT_FALSE(p.is_index("f", 2));
    EXPECT_FALSE(p.is_index("f", 3));
    EXPECT_TRUE(p.is_index("f", 4));
    EXPECT_TRUE(p.is_index("f", 5));
}

TEST(Indices, BoundsComeFromMasksTypesAndLoops) {
    const Parsed p(R"(void f(int x, unsigned char byte) {
        probe(x & 31); probe(x % 7); probe(byte); probe(x); probe(threadIdx.x);
        for (int i = 0; i < 100; ++i) probe(i + 1);
        const int limit = -500; probe(limit); probe((unsigned char)x); })");
    EXPECT_EQ(p.bound("f", 0), 31u);
    EXPECT_EQ(p.bound("f", 1), 6u);
    EXPECT_EQ(p.bound("f", 2), 255u);
    EXPECT_EQ(p.bound("f", 3), 0u);
    EXPECT_EQ(p.bound("f", 4), 1023u);
    EXPECT_EQ(p.bound("f", 5), 101u);
    EXPECT_EQ(p.bound("f", 6), 500u);
    EXPECT_EQ(p.bound("f", 7), 255u);
}

}  // namespace
}  // namespace mp::lint::test
