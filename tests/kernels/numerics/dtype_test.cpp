#include "kernels/numerics/dtype.hpp"

#include <set>

#include <gtest/gtest.h>

namespace mp {
namespace {

TEST(DType, EveryNameReadsBackAndIsUnique) {
    std::set<std::string_view> seen;
    for (int i = 0; i <= static_cast<int>(kLastDType); ++i) {
        const auto d = static_cast<DType>(i);
        EXPECT_EQ(dtype_from_name(name_of(d)), d) << name_of(d);
        EXPECT_TRUE(seen.insert(name_of(d)).second) << name_of(d);
    }
    EXPECT_EQ(name_of(DType::fp16), "fp16");
    EXPECT_EQ(name_of(DType::lowp), "lowp");
    EXPECT_EQ(name_of(DType::uint8), "uint8");
    EXPECT_EQ(name_of(DType::boolean), "bool");
}

TEST(DType, PyTorchSpellingsAreUnderstood) {
    EXPECT_EQ(dtype_from_name("half"), DType::fp16);
    EXPECT_EQ(dtype_from_name("torch.bfloat16"), DType::bf16);
    EXPECT_EQ(dtype_from_name("torch::kHalf"), DType::fp16);
    EXPECT_EQ(dtype_from_name("at::kBFloat16"), DType::bf16);
    EXPECT_EQ(dtype_from_name("c10::ScalarType::Float"), DType::fp32);
    EXPECT_EQ(dtype_from_name("torch.float8_e4m3fn"), DType::e4m3);
    EXPECT_EQ(dtype_from_name("torch::kLong"), DType::int64);
    EXPECT_EQ(dtype_from_name("char"), DType::int8);
}

TEST(DType, OtherNamesAreNothing) {
    for (const std::string_view text : {"", "fp", "float17", "numpy.float16", "kind", "k", "torch.", ":",
                                        "complex64", "my::kHalf", "float8_e4m3fnuz", "half "})
        EXPECT_EQ(dtype_from_name(text), std::nullopt) << text;
}

TEST(DType, AValueOutsideTheEnumerationIsUnknown) { EXPECT_EQ(name_of(static_cast<DType>(200)), "unknown"); }

TEST(DType, Classes) {
    EXPECT_TRUE(is_low_precision(DType::e5m2) && is_low_precision(DType::lowp));
    EXPECT_FALSE(is_low_precision(DType::tf32) || is_low_precision(DType::int8));
    EXPECT_TRUE(is_half(DType::lowp) && !is_half(DType::e4m3));
    EXPECT_FALSE(is_float(DType::unknown) || is_integer(DType::boolean));
}

}  // namespace
}  // namespace mp
