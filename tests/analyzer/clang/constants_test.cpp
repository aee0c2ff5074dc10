#include <gtest/gtest.h>

#include "tests/analyzer/clang/flow_fixture.hpp"

namespace mp::lint::test {
namespace {

Role role(const std::string& body, double literal, const std::string& before = "") {
    return Parsed(before + "void f(half x, half y, half m, bool b, const half* p, int n) { " + body +
                  " probe(x); }")
        .role("f", literal);
}

TEST(Constants, AnEpsilonIsAddedHoweverItIsWritten) {
    EXPECT_EQ(role("x = x + half(1e-8f);", 1e-8), Role::added);
    EXPECT_EQ(role("x = __hadd(x, __float2half(1e-8f));", 1e-8), Role::added);
    EXPECT_EQ(role("const half eps = __float2half(1e-8f); x = __hadd(x, eps);", 1e-8), Role::added);
    EXPECT_EQ(role("x += half(1e-8f);", 1e-8), Role::added);
    EXPECT_EQ(role("x = safe(x, half(1e-8f));", 1e-8, "half safe(half v, half e) { return __hadd(v, e); }\n"),
              Role::added);
    EXPECT_EQ(
        role("x = x + cast<half>(1e-8f);", 1e-8, "template <class T> T cast(float v) { return T(v); }\n"),
        Role::added);
}

TEST(Constants, ArithmeticAndComparisonAreToldApart) {
    EXPECT_EQ(role("x = x * half(3.f);", 3), Role::multiplier);
    EXPECT_EQ(role("x = x / half(3.f);", 3), Role::divisor);
    EXPECT_EQ(role("x = half(3.f) / x;", 3), Role::none);
    EXPECT_EQ(role("if (x > half(3.f)) probe(y);", 3), Role::compared);
    EXPECT_EQ(role("x = __hmax(x, half(3.f));", 3), Role::clamp);
}

TEST(Constants, AStartValueOfAMaximumIsAnIdentity) {
    EXPECT_EQ(role("half v = -1e5f; for (int i = 0; i < n; ++i) v = __hmax(v, p[i]); probe(v);", 1e5),
              Role::max_identity);
    EXPECT_EQ(role("half v = -1e5f; for (int i = 0; i < n; ++i) if (p[i] > v) v = p[i]; probe(v);", 1e5),
              Role::max_identity);
    EXPECT_EQ(role("half v = b ? x : half(-1e5f); v = warp_max(v); probe(v);", 1e5,
                   "half warp_max(half v) { for (int m = 16; m > 0; m >>= 1) v = __hmax(v, "
                   "__shfl_xor_sync(~0u, v, m)); return v; }\n"),
              Role::max_identity);
    EXPECT_NE(role("half v = -1e5f; for (int i = 0; i < n; ++i) v += p[i]; probe(v);", 1e5),
              Role::max_identity);
}

TEST(Constants, WhatReplacesMaskedScoresFillsTheMask) {
    EXPECT_EQ(role("x = b ? x : half(-1e5f);", 1e5), Role::mask_fill);
    EXPECT_EQ(role("x = x + (half(1.f) - m) * half(-1e5f);", 1e5), Role::mask_fill);
}

}  // namespace
}  // namespace mp::lint::test
