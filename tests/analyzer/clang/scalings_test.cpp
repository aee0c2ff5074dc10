#include <gtest/gtest.h>

#include "tests/analyzer/clang/flow_fixture.hpp"

namespace mp::lint::test {
namespace {

const char* const kHead =
    "void f(half* p, const half* g, float* m, float* w, float lr, float b, float scale) { int i = "
    "threadIdx.x; ";

std::vector<Scaling> scalings(const std::string& body, const std::string& before = "") {
    return Parsed(before + kHead + body + " }").scalings("f");
}

TEST(Scalings, AGradientIsReadThroughItsScale) {
    for (const char* body :
         {"float x = (float)g[i] / scale; x += lr * w[i]; m[i] = b * m[i] + (1 - b) * x;",
          "float x = (float)g[i] / scale; float n = m[i]; n = b * n + (1 - b) * x; m[i] = n;",
          "m[i] = b * m[i] + (1 - b) * ((float)g[i] / scale);"}) {
        const auto found = scalings(body);
        ASSERT_EQ(found.size(), 1u) << body;
        EXPECT_EQ(found[0].param, 1) << body;
        EXPECT_EQ(found[0].dtype, DType::fp16) << body;
        EXPECT_EQ(found[0].factor.param, 6) << body;
        EXPECT_TRUE(found[0].divides) << body;
        EXPECT_TRUE(found[0].averages) << body;
        EXPECT_FALSE(found[0].stored) << body;
    }
}

TEST(Scalings, AFactorMultipliesAndMayBeANumber) {
    const auto by_parameter = scalings("m[i] = b * m[i] + (1 - b) * (scale * (float)g[i]);");
    ASSERT_EQ(by_parameter.size(), 1u);
    EXPECT_FALSE(by_parameter[0].divides);
    const auto by_number = scalings("w[i] = w[i] - lr * ((float)g[i] / 128.f);");
    ASSERT_EQ(by_number.size(), 1u);
    EXPECT_EQ(by_number[0].factor.constant.str(), "128");
    EXPECT_TRUE(by_number[0].subtracts);
    EXPECT_FALSE(by_number[0].averages);
}

TEST(Scalings, ALerpInAHelperIsAnAverage) {
    const auto found =
        scalings("float x = scale * (float)g[i]; float n = m[i]; n = lerp_(x, n, b); m[i] = n;",
                 "float lerp_(float a, float c, float t) { return fmaf(t, c, fmaf(-t, a, a)); }\n");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].averages);
}

TEST(Scalings, AScaledGradientIsStored) {
    const auto found = scalings("p[i] = (half)(scale * w[i] / 4.f);");
    ASSERT_EQ(found.size(), 2u);
    EXPECT_TRUE(found[0].stored);
    EXPECT_EQ(found[0].param, 0);
    EXPECT_EQ(found[0].factor.param, 6);
    EXPECT_FALSE(found[0].divides);
    EXPECT_TRUE(found[1].divides);
    EXPECT_EQ(found[1].factor.constant.str(), "4");
}

TEST(Scalings, OtherProductsAreNone) {
    for (const char* body :
         {"w[i] = (float)g[i] / scale;",                        // nothing is kept
          "m[i] = b * m[i] + (1 - b) * (w[i] / scale);",        // fp32 memory
          "m[i] = b * m[i] + (1 - b) * ((float)g[i] / w[i]);",  // not the same for every element
          "scale = w[i]; m[i] = b * m[i] + (1 - b) * ((float)g[i] / scale);"}) {
        EXPECT_TRUE(scalings(body).empty()) << body;
    }
}

}  // namespace
}  // namespace mp::lint::test
