#include "instrument/cuda/kernel_pointers.hpp"

#include <gtest/gtest.h>

namespace mp::raw {
namespace {

TEST(KernelPointers, ConstIsRead) {
    EXPECT_EQ(pointers_of("void norm<__nv_bfloat16>(__nv_bfloat16*, float*, __nv_bfloat16 const*, int)"),
              "reads bf16; writes fp32, bf16");
    EXPECT_EQ(pointers_of("relu(__half*, int)"), "writes fp16");
    EXPECT_EQ(pointers_of("check(float const*, int*)"), "reads fp32");
    EXPECT_EQ(pointers_of("copy(float4*, __half2 const*, __nv_fp8_e4m3 const*)"),
              "reads fp16, e4m3; writes fp32");
}

TEST(KernelPointers, TemplateArgumentsAndPointersToPointersAreNoParameters) {
    EXPECT_EQ(pointers_of("void k<Op<float*, int>, 4>(Op<float*, int>, double*)"), "writes fp64");
    EXPECT_EQ(pointers_of("void k<(anonymous namespace)::Op<1, 2> >(float**, unsigned)"), "");
    EXPECT_EQ(pointers_of("k(float* const, float const* const)"), "reads fp32; writes fp32");
}

TEST(KernelPointers, ANameWithoutParametersTellsNothing) {
    for (const char* const name :
         {"", "triton_poi_fused_add_0", "k()", "k(", ")", "k(int)", "k(,*, *)", "a CUDA graph"})
        EXPECT_EQ(pointers_of(name), "") << name;
}

}  // namespace
}  // namespace mp::raw
