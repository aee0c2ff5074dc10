#include "instrument/cuda/product_text.hpp"

#include <gtest/gtest.h>

namespace mp::raw {
namespace {

Product asked(int compute, DType inputs = DType::fp16) {
    Product p;
    p.compute = compute;
    p.read({.dtype = inputs});
    p.read({.dtype = inputs});
    return p;
}

TEST(ProductText, SumsHaveAFormat) {
    EXPECT_EQ(how_of(asked(abi::kCompute16F)), "fp16 sums");
    EXPECT_EQ(how_of(asked(abi::kCompute32F)), "fp32 sums");
    EXPECT_EQ(how_of(asked(abi::kCompute32FFast16BF, DType::fp32)), "fp32 sums of bf16 inputs");
    EXPECT_EQ(how_of(asked(abi::kCompute64F, DType::fp64)), "fp64 sums");
    EXPECT_EQ(how_of(asked(999)), "compute type 999");
    EXPECT_EQ(how_of({}), "unknown sums");
}

TEST(ProductText, InputsMayBeRoundedFirst) {
    Product p = asked(abi::kCompute32FFastTF32, DType::fp32);
    p.tf32 = true;
    EXPECT_EQ(how_of(p), "fp32 sums of TF32 inputs");
    EXPECT_EQ(how_of(asked(abi::kCompute32FFastTF32, DType::fp32)), "fp32 sums")
        << "switched off by the override";
    p.compute = abi::kCompute32F;
    EXPECT_EQ(how_of(p), "fp32 sums of inputs that the handle's mode rounds") << "to TF32 or fp16";
    EXPECT_EQ(how_of(asked(abi::kCompute32FEmulated, DType::fp32)), "fp32 sums, emulated with bf16");
}

TEST(ProductText, PartsOfASplitSumAreAddedSomewhere) {
    Product p = asked(abi::kCompute32F);
    p.scheme = abi::kLtReduceInOutputType;
    EXPECT_EQ(how_of(p), "fp32 sums") << "one part";
    p.parts = 4;
    EXPECT_EQ(how_of(p), "fp32 sums, 4 parts added in the result");
    p.scheme = abi::kLtReduceInPlace;
    EXPECT_EQ(how_of(p), "fp32 sums, 4 parts added in the result");
    p.scheme = abi::kLtReduceInComputeType;
    EXPECT_EQ(how_of(p), "fp32 sums, 4 parts added in the format of the sums");
    p.scheme = 0;
    EXPECT_EQ(how_of(p), "fp32 sums, 4 parts added in an unknown format");
}

// The numbers are those of cublasLt.h.
TEST(ProductText, EpiloguesAreNamed) {
    const auto epilogue = [](std::uint32_t bits) {
        Product p = asked(abi::kCompute32F);
        p.epilogue = bits;
        return how_of(p).substr(sizeof "fp32 sums" - 1);
    };
    EXPECT_EQ(epilogue(1), "");
    EXPECT_EQ(epilogue(4), ", bias");
    EXPECT_EQ(epilogue(6), ", bias and ReLU");
    EXPECT_EQ(epilogue(164), ", bias and GELU") << "GELU_AUX_BIAS";
    EXPECT_EQ(epilogue(192), ", backward of GELU") << "DGELU";
    EXPECT_EQ(epilogue(208), ", backward of GELU and gradient of the bias") << "DGELU_BGRAD";
    EXPECT_EQ(epilogue(256), ", gradient of the bias from A");
    Product p = asked(abi::kCompute32F, DType::e4m3);
    p.has_scales = true;
    EXPECT_EQ(how_of(p), "fp32 sums, scaled");
}

}  // namespace
}  // namespace mp::raw
