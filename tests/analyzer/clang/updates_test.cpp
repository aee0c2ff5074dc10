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

const char* const kVectors =
    "extern \"C\" void* memcpy(void*, const void*, unsigned long); struct float2 { float x, y; }; struct "
    "float4 { "
    "float x, y, z, w; }; float2 __half22float2(half2); half2 __float22half2_rn(float2); struct alignas(16) "
    "Pack { "
    "half v[8]; }; ";

TEST(Updates, PassThroughRegisters) {
    for (const char* body :
         {"half r[4]; for (int j = 0; j < 4; ++j) r[j] = p[4 * i + j]; for (int j = 0; j < 4; ++j) r[j] = "
          "(half)((float)r[j] - lr * (float)g[4 * i + j]); for (int j = 0; j < 4; ++j) p[4 * i + j] = r[j];",
          "float r[4]; for (int j = 0; j < 4; ++j) r[j] = (float)p[4 * i + j]; for (int j = 0; j < 4; ++j) "
          "r[j] "
          "-= lr * (float)g[4 * i + j]; for (int j = 0; j < 4; ++j) p[4 * i + j] = (half)r[j];",
          "Pack a = ((Pack*)p)[i], b = ((const Pack*)g)[i]; for (int j = 0; j < 8; ++j) a.v[j] = "
          "(half)((float)a.v[j] - lr * (float)b.v[j]); ((Pack*)p)[i] = a;",
          "float4 a = ((float4*)p)[i]; half* h = (half*)&a; for (int j = 0; j < 8; ++j) h[j] = h[j] - "
          "half(lr) * "
          "g[8 * i + j]; ((float4*)p)[i] = a;",
          "half r[4]; memcpy(r, p, 8); for (int j = 0; j < 4; ++j) r[j] = r[j] - half(lr) * g[j]; memcpy(p, "
          "r, 8);"}) {
        const Update u = only(body, kVectors);
        EXPECT_TRUE(u.subtracts) << body;
        EXPECT_FALSE(u.has_master) << body;
        EXPECT_EQ(u.param, 0) << body;
        EXPECT_EQ(u.dtype, DType::fp16) << body;
    }
}

TEST(Updates, RegistersWithAMasterOrWithoutAnUpdateAreNone) {
    for (const char* body : {"half r[4]; for (int j = 0; j < 4; ++j) { w[j] -= lr * (float)g[j]; r[j] = "
                             "(half)w[j]; } memcpy(p, r, 8);",
                             "float4 a = ((float4*)p)[i]; half* h = (half*)&a; for (int j = 0; j < 8; ++j) "
                             "h[j] = h[j] + g[8 * i + j]; "
                             "((float4*)p)[i] = a;",
                             "float2 v = __half22float2(((half2*)p)[i]), r; r.x = v.x * w[i] - v.y * c[i]; "
                             "r.y = v.y * w[i] + v.x * "
                             "c[i]; ((half2*)p)[i] = __float22half2_rn(r);"}) {
        EXPECT_TRUE(updates(body, kVectors).empty()) << body;
    }
    const Update kept = only(
        "half r[4]; memcpy(r, p, 8); for (int j = 0; j < 4; ++j) { float n = (float)r[j] - lr * "
        "(float)g[j]; w[j] = n; r[j] = (half)n; } memcpy(p, r, 8);",
        kVectors);
    EXPECT_TRUE(kept.has_master);
}

TEST(Updates, ArraysOfATableAreToldApart) {
    const char* const before = "struct Lists { void* at[3][9]; }; ";
    const auto found =
        Parsed(std::string(before) +
               "void f(Lists t, float lr, int n) { half* g = (half*)t.at[0][n]; g += n; half* p = "
               "(half*)t.at[1][n]; p += n; half* c = (half*)t.at[2][n]; c += n; for (int i = 0; i < n; "
               "++i) { half v = (half)((float)p[i] - lr * (float)g[i]); p[i] = v; c[i] = v; } }")
            .updates("f");
    ASSERT_EQ(found.size(), 1u) << "c is a copy";
    EXPECT_EQ(found[0].target.str(), "p[i]");
}

TEST(Updates, WhatDoesNotDependOnTheOldValueIsNone) {
    EXPECT_TRUE(updates("w[i] = w[i] - lr * (float)g[i]; p[i] = (half)w[i];").empty());
    EXPECT_TRUE(updates("p[i] = (half)(lr * (float)g[i]);").empty());
}

TEST(Updates, AddingAGradientOrShiftingByAMeanIsNoWeightUpdate) {
    EXPECT_TRUE(updates("p[i] = (half)((float)p[i] + (float)g[i]);").empty());
    EXPECT_TRUE(updates("p[i] = p[i] - g[0];").empty());
    EXPECT_TRUE(
        updates("float v = (float)g[i]; v -= w[i] * d; v *= lr; p[i] = (half)((float)p[i] + v);").empty());
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
                             "p[i] = (half)mix((float)g[i], (float)p[i], d);",
                             "float a = (float)g[i]; p[i] = (half)(a + d * ((float)p[i] - a));"}) {
        const Update u = only(
            body, "inline float mix(float a, float b, float t) { return fmaf(t, b, fmaf(-t, a, a)); }\n");
        EXPECT_TRUE(u.interpolates) << body;
    }
    EXPECT_FALSE(only("p[i] = (half)((float)p[i] - lr * (float)g[i]);").interpolates);
}

TEST(Updates, AHelperMayChangeTheValueThroughAReference) {
    const char* const helpers =
        "inline void step(float& w, float g, float lr) { w -= lr * g; }\n"
        "inline void by_pointer(float* w, float g, float lr) { *w = *w - lr * g; }\n"
        "inline void shift(float& w, float g) { w += g; }\n";
    for (const char* body : {"float v = (float)p[i]; step(v, (float)g[i], lr); p[i] = (half)v;",
                             "float v = (float)p[i]; by_pointer(&v, (float)g[i], lr); p[i] = (half)v;"})
        EXPECT_TRUE(only(body, helpers).subtracts) << body;
    EXPECT_TRUE(updates("float v = (float)p[i]; shift(v, (float)g[i]); p[i] = (half)v;", helpers).empty());
    EXPECT_TRUE(
        only("float v = w[i]; step(v, (float)g[i], lr); w[i] = v; p[i] = (half)((float)p[i] - lr * v);",
             helpers)
            .subtracts);
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
