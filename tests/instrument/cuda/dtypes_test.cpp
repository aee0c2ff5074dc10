#include "instrument/cuda/dtypes.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mp::raw {
namespace {

TEST(Dtypes, TypesThatAreNotFloatsAreUnknown) {
    EXPECT_EQ(dtype_of_cuda(abi::kR16BF), DType::bf16);
    EXPECT_EQ(dtype_of_cuda(abi::kR8FE5M2), DType::e5m2);
    EXPECT_EQ(dtype_of_cuda(3), DType::unknown);   // CUDA_R_8I
    EXPECT_EQ(dtype_of_cuda(33), DType::unknown);  // CUDA_R_4F_E2M1
    EXPECT_EQ(dtype_of_nccl(abi::kNcclE4M3), DType::e4m3);
    EXPECT_EQ(dtype_of_nccl(2), DType::unknown);  // ncclInt32
}

TEST(Dtypes, AComputeTypeRoundsItsInputsOrNot) {
    for (const int fast : {abi::kCompute32FFast16F, abi::kCompute32FFast16BF, abi::kCompute32FFastTF32})
        EXPECT_TRUE(rounds_inputs(fast)) << fast;
    for (const int exact : {abi::kCompute16F, abi::kCompute32F, abi::kCompute32FPedantic, abi::kCompute64F,
                            abi::kCompute64FEmulated, abi::kCompute32FEmulated})
        EXPECT_FALSE(rounds_inputs(exact)) << exact;
}

// 4 and 8 are the modes of emulation, 16 forbids sums in 16 bits.
TEST(Dtypes, TheMathModeDecidesForTheDefaultComputeTypeAlone) {
    for (const int rounding : {abi::kMathTensorOp, abi::kMathTF32, abi::kMathTF32 | abi::kMathReducesWide}) {
        EXPECT_TRUE(rounds_inputs(abi::kCompute32F, rounding)) << rounding;
        EXPECT_FALSE(rounds_inputs(abi::kCompute32FPedantic, rounding)) << rounding;
        EXPECT_FALSE(rounds_inputs(abi::kCompute32FEmulated, rounding)) << rounding;
    }
    for (const int exact : {0, 2, 4, 8, 16, 4 | 16})
        EXPECT_FALSE(rounds_inputs(abi::kCompute32F, exact)) << exact;
}

TEST(Dtypes, FactorsAreReadInTheTypeOfTheComputation) {
    const float wide = 0.375f;
    const Pattern<DType::fp16> half = 0x3600;  // 0.375
    for (const int compute : {abi::kCompute32F, abi::kCompute32FPedantic, abi::kCompute32FEmulated,
                              abi::kCompute32FFast16F, abi::kCompute32FFast16BF, abi::kCompute32FFastTF32})
        EXPECT_EQ(factor_of(&wide, compute), 0.375) << compute;
    for (const int compute : {abi::kCompute16F, abi::kCompute16FPedantic})
        EXPECT_EQ(factor_of(&half, compute), 0.375) << compute;
    const double double_factor = 0.375;
    EXPECT_EQ(factor_of(&double_factor, abi::kCompute64F), std::nullopt);
    EXPECT_EQ(factor_of(nullptr, abi::kCompute32F), 0);
}

}  // namespace
}  // namespace mp::raw
