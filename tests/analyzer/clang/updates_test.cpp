#include <gtest/gtest.h>

#include "tests/analyzer/clang/flow_fixture.hpp"

namespace mp::lint::test {
namespace {

const char* const kHead =
    "void f(half* p, const half* g, float* w, float* c, float lr, float d, unsigned seed) { int i "
    "= threadIdx.x; ";

std::vector<Update> updates(const std::string& body, const std::string& before = "") {
    return Parsed(before + kHead + body + " }").updates("f");
}

Update only(const std::string& body, const std::string& before = "") {
    const auto found = updates(body, before);
    EXPECT_EQ(found.size(), 1u) << body;
    return found.empty() ? Update{} : found.front();
}

TEST(Updates, AStepOfGradientDescentSubtracts) {
    for (const char* body : {"float old = (float)p[i]; float v = old - lr * (float)g[i]; p[i] = (half)v;",
                             "p[i] = p[i] - half(lr) * g[i];", "p[i] -= half(lr) * g[i];",
                             "float v = (float)p[i]; v -= lr * (float)g[i]; p[i] = __float2half(v);",
                             "p[i] = (half)fmaf(-lr, (float)g[i], (float)p[i]);",
                             "half* q = p + i; *q = (half)((float)*q - lr * (float)g[i]);"}) {
        const Update u = only(body);
        EXPECT_TRUE(u.subtracts) << body;
        EXPECT_FALSE(u.has_master) << body;
        EXPECT_FALSE(u.compensated) << body;
        EXPECT_EQ(u.param, 0) << body;
        EXPECT_EQ(u.dtype, DType::fp16) << body;
    }
    EXPECT_EQ(only("p[i] = (half)((float)p[i] - lr * (float)g[i]);").computed, DType::fp32);
    EXPECT_EQ(only("p[i] = p[i] - half(lr) * g[i];").computed, DType::fp16);
}

TEST(Updates, WhatDoesNotDependOnTheOldValueIsNone) {
    EXPECT_TRUE(updates("w[i] = w[i] - lr * (float)g[i]; p[i] = (half)w[i];").empty());
    EXPECT_TRUE(updates("p[i] = (half)(lr * (float)g[i]);").empty());
}

TEST(Updates, AddingAGradientOrShiftingByAMeanIsNoWeightUpdate) {
    EXPECT_TRUE(updates("p[i] = (half)((float)p[i] + (float)g[i]);").empty());
    EXPECT_TRUE(updates("p[i] = p[i] - g[0];").empty());
}

TEST(Updates, ActivationsAndRotationsInPlaceAreNoWeightUpdates) {
    for (const char* body :
         {"half2 v = ((half2*)p)[i]; half2 t; t.x = half(0.5f) * v.x * (half(1.f) + v.x); "
          "t.y = half(0.5f) * v.y * (half(1.f) + v.y); ((half2*)p)[i] = t;",
          "float a = (float)p[i], b = (float)p[i + 1]; p[i] = (half)(a * w[i] - b * c[i]);",
          "p[i] = (half)(0.5f * (float)p[i] + 0.5f * (float)p[i + 1] * (float)g[i]);",
          "float a = (float)p[i]; p[i] = (half)(a * (1.f + d * (float)g[i]) * 0.5f);"}) {
        EXPECT_TRUE(updates(body).empty()) << body;
    }
    // Decoupled weight decay scales the old value, and is an update.
    EXPECT_TRUE(only("p[i] = (half)((float)p[i] * (1.f - lr * d) - lr * (float)g[i]);").subtracts);
}

TEST(Updates, AMasterCopyIsSeenAndSoIsItsCondition) {
    const Update always = only("float v = (float)p[i] - lr * (float)g[i]; p[i] = (half)v; w[i] = v;");
    EXPECT_TRUE(always.has_master);
    EXPECT_FALSE(always.master_optional);
    const Update sometimes = only(
        "float old = w ? w[i] : (float)p[i]; float v = old - lr * (float)g[i]; p[i] = (half)v; if "
        "(w) w[i] = v;");
    EXPECT_TRUE(sometimes.has_master);
    EXPECT_TRUE(sometimes.master_optional);
}

TEST(Updates, AveragesInterpolate) {
    for (const char* body : {"p[i] = (half)(d * (float)p[i] + (1 - d) * (float)g[i]);",
                             "float v = ((float)p[i] * d * lr + (float)g[i] * (1 - d)) * lr; p[i] = (half)v;",
                             "float a = (float)p[i]; p[i] = (half)(a + d * ((float)g[i] - a));",
                             "p[i] = (half)mix((float)g[i], (float)p[i], d);"}) {
        const Update u = only(
            body, "inline float mix(float a, float b, float t) { return fmaf(t, b, fmaf(-t, a, a)); }\n");
        EXPECT_TRUE(u.interpolates) << body;
    }
    EXPECT_FALSE(only("p[i] = (half)((float)p[i] - lr * (float)g[i]);").interpolates);
}

const char* const kRounders = R"(
    void plain(float in, half* out, unsigned) { *out = (half)in; }
    void by_chance(float in, half* out, unsigned r) {
        unsigned bits = __float_as_uint(in); bits = (bits & 0xffff) > (r & 0xffff) ? bits | 0xffff : bits & ~0xffffu;
        *out = __float2half(__uint_as_float(bits)); }
)";

TEST(Updates, AStoreThroughAHelperNamesTheHelper) {
    const Update u =
        only("float v = (float)p[i] - lr * (float)g[i]; plain(v, &p[i], seed); w[i] = v;", kRounders);
    EXPECT_TRUE(u.subtracts);
    EXPECT_TRUE(u.has_master);
    EXPECT_EQ(u.param, 0);
    EXPECT_EQ(u.through.str(), "plain");
    EXPECT_FALSE(u.through_usr.empty());
}

TEST(Updates, AHelperSaysWhetherItRoundsByChance) {
    const Parsed p(kRounders);
    ASSERT_EQ(p.updates("plain").size(), 1u);
    EXPECT_FALSE(p.updates("plain").front().compensated);
    EXPECT_EQ(p.updates("plain").front().param, 1);
    EXPECT_EQ(p.updates("plain").front().computed, DType::fp32);
    ASSERT_EQ(p.updates("by_chance").size(), 1u);
    EXPECT_TRUE(p.updates("by_chance").front().compensated);
}

TEST(Updates, AKeptResidualCompensates) {
    const Update u = only(
        "float v = (float)p[i] - lr * (float)g[i] + c[i]; half r = (half)v; p[i] = r; c[i] = v - "
        "(float)r;");
    EXPECT_TRUE(u.compensated);
    EXPECT_FALSE(u.has_master);
}

TEST(Updates, ARunningSumInALoopIsAnAccumulation) {
    EXPECT_TRUE(Parsed("void f(half* p, const half* g, float lr, int n) { for (int k = 0; k < n; ++k) "
                       "p[0] = p[0] - half(lr) * g[k]; }")
                    .updates("f")
                    .empty());
}

}  // namespace
}  // namespace mp::lint::test
