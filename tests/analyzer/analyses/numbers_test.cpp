#include "analyzer/analyses/numbers.hpp"

#include <gtest/gtest.h>

namespace mp::lint {

TEST(Numbers, AreTheWellKnownOnes) {
    EXPECT_EQ(largest_value(DType::fp16), 65504);
    EXPECT_EQ(overflows_from(DType::fp16), 65520);
    EXPECT_EQ(significant_bits(DType::fp16), 11);
    EXPECT_EQ(significant_bits(DType::bf16), 8);
    EXPECT_EQ(first_inexact_integer(DType::fp16), 2049u);
    EXPECT_EQ(first_inexact_integer(DType::bf16), 257u);
}

TEST(Numbers, UnknownHalfAnswersWithTheWorseOfTheTwo) {
    EXPECT_EQ(overflows_from(DType::lowp), overflows_from(DType::fp16));
    EXPECT_EQ(significant_bits(DType::lowp), significant_bits(DType::bf16));
    EXPECT_EQ(stalls_at(DType::lowp), "256 (bf16) or 2048 (fp16)");
    EXPECT_EQ(rounded(DType::lowp, 1e-8), 0);
}

TEST(Numbers, AreShownShort) {
    EXPECT_EQ(shown(65504), "65504");
    EXPECT_EQ(shown(2.98023223876953125e-08, 3), "2.98e-08");
    EXPECT_EQ(shown(-1e9), "-1e+09");
    EXPECT_EQ(shown(0.5), "0.5");
}

}  // namespace mp::lint
