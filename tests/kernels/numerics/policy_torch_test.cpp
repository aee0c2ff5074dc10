#include <gtest/gtest.h>

#include "kernels/numerics/policy.hpp"

namespace mp {
namespace {

// The content of the built-in lists, by version and device, and autocast's result for them.

Policy torch(std::string_view device, std::string_view version) {
    Result<Policy> policy = Policy::for_torch(device, version);
    EXPECT_TRUE(policy.has_value()) << device << version;
    return policy ? *std::move(policy) : Policy{};
}

Category in(const Policy& policy, std::string_view op) { return policy.category(Op(op)); }

TEST(TorchPolicy, EveryBuiltInListReadsWithoutAProblem) {
    EXPECT_EQ(Policy::built_in_names().size(), 17u);
    for (const std::string_view name : Policy::built_in_names()) {
        const Result<Policy> policy = Policy::built_in(name);
        ASSERT_TRUE(policy) << name << ": " << policy.error().message;
        EXPECT_EQ(policy->name(), name);
        EXPECT_FALSE(policy->entries().empty()) << name;
        for (const Policy::Problem& p : policy->problems())
            ADD_FAILURE() << to_string(p.at) << ": " << p.message;
    }
}

TEST(TorchPolicy, SoftmaxIsFp32OnCudaAndUnlistedOnCpu) {
    EXPECT_EQ(in(torch("cuda", "2.5"), "softmax"), Category::fp32_set_opt_dtype);
    EXPECT_EQ(in(torch("cpu", "2.5"), "softmax"), Category::unlisted);
    for (const std::string_view op : {"exp", "log", "pow", "sum", "norm", "cumsum", "layer_norm"}) {
        EXPECT_NE(in(torch("cuda", "2.5"), op), Category::unlisted) << op;
        EXPECT_EQ(in(torch("cpu", "2.5"), op), Category::unlisted) << op;
    }
}

TEST(TorchPolicy, BinaryCrossEntropyIsBannedOnCudaAndFp32OnCpu) {
    EXPECT_EQ(in(torch("cuda", "1.13"), "binary_cross_entropy"), Category::banned);
    EXPECT_EQ(in(torch("cpu", "1.13"), "binary_cross_entropy"), Category::fp32);
    EXPECT_EQ(in(torch("cuda", "2.5"), "binary_cross_entropy_with_logits"), Category::fp32);
}

TEST(TorchPolicy, CudaListsChangeWithTheVersion) {
    const Policy old = torch("cuda", "1.13"), middle = torch("cuda", "2.4"), fresh = torch("cuda", "2.5");
    EXPECT_EQ(in(middle, "vdot"), Category::unlisted);
    EXPECT_EQ(in(fresh, "vdot"), Category::promote);
    EXPECT_EQ(in(middle, "upsample_bilinear2d"), Category::unlisted);
    EXPECT_EQ(in(fresh, "upsample_bilinear2d"), Category::fp32);
    EXPECT_EQ(in(torch("cuda", "2.11"), "rms_norm"), Category::unlisted);
    EXPECT_EQ(in(torch("cuda", "2.12"), "rms_norm"), Category::fp32);
    EXPECT_EQ(in(torch("xpu", "2.12"), "rms_norm"), Category::fp32);
    EXPECT_EQ(in(old, "scaled_dot_product_attention"), Category::unlisted);
    EXPECT_EQ(in(middle, "scaled_dot_product_attention"), Category::lower);
    EXPECT_EQ(in(old, "linalg_vector_norm"), Category::unlisted);
    EXPECT_EQ(in(middle, "linalg_vector_norm"), Category::fp32_set_opt_dtype);
    for (const Policy* p : {&old, &middle, &fresh}) {
        EXPECT_EQ(in(*p, "matmul"), Category::lower);
        EXPECT_EQ(in(*p, "norm"), Category::fp32_append_dtype);
        EXPECT_EQ(in(*p, "scatter_add"), Category::promote);
        EXPECT_EQ(in(*p, "relu"), Category::unlisted);
        EXPECT_EQ(in(*p, "cross_entropy"), Category::unlisted);
    }
}

TEST(TorchPolicy, CpuListsChangeWithTheVersion) {
    const Policy old = torch("cpu", "1.13"), middle = torch("cpu", "2.4"), fresh = torch("cpu", "2.5");
    EXPECT_EQ(in(old, "symeig"), Category::fp32);
    EXPECT_EQ(in(middle, "symeig"), Category::unlisted);
    EXPECT_EQ(in(old, "prelu"), Category::unlisted);
    EXPECT_EQ(in(middle, "prelu"), Category::lower);
    EXPECT_EQ(in(middle, "_addmm_activation"), Category::unlisted);
    EXPECT_EQ(in(fresh, "_addmm_activation"), Category::lower);
    EXPECT_EQ(in(fresh, "cat"), Category::promote);
    EXPECT_EQ(in(fresh, "cross_entropy"), Category::fp32);
    EXPECT_EQ(in(fresh, "fft_rfft"), Category::fp32);
}

TEST(TorchPolicy, AVersionUsesTheNewestListThatIsNotNewer) {
    EXPECT_EQ(torch("cuda", "1.13.1+cu117").name(), "torch-cuda-1.13");
    EXPECT_EQ(torch("cuda", "2.3").name(), "torch-cuda-1.13");
    EXPECT_EQ(torch("cuda", "2.4.1").name(), "torch-cuda-2.4");
    EXPECT_EQ(torch("cpu", "2.5.0a0").name(), "torch-cpu-2.5");
    EXPECT_EQ(torch("cuda", "2.11").name(), "torch-cuda-2.5") << "11 is more than 5";
    EXPECT_EQ(torch("cuda", "3.0").name(), "torch-cuda-2.12");
    EXPECT_EQ(torch("cuda", "").name(), "torch-cuda-2.12");
}

TEST(TorchPolicy, WhatHasNoListIsAnErrorWithAHint) {
    for (const auto& [device, version] : {std::pair("tpu", "2.5"),
                                          {"cuda", "1.9"},
                                          {"cuda", "new"},
                                          {"cuda", "2"},
                                          {"cuda", "2.x"},
                                          {"cuda", "-1.13"},
                                          {"", "2.5"}}) {
        const Result<Policy> policy = Policy::for_torch(device, version);
        ASSERT_FALSE(policy) << device << version;
        EXPECT_FALSE(policy.error().hint.empty()) << version;
    }
    const Result<Policy> none = Policy::built_in("torch-cuda-9\x1b[2J");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message.find('\x1b'), std::string::npos);
    EXPECT_NE(none.error().hint.find("apex-o1"), std::string::npos);
    EXPECT_FALSE(Policy::built_in("ops"));
    EXPECT_FALSE(Policy::built_in(""));
}

TEST(TorchPolicy, TheRegionsDtypeIsTheDevicesUnlessSaid) {
    const Policy cuda = torch("cuda", "2.5"), cpu = torch("cpu", "2.5");
    const DType fp32[] = {DType::fp32, DType::fp32};
    EXPECT_EQ(cuda.dtype_of(Op("matmul"), fp32), DType::fp16);
    EXPECT_EQ(cpu.dtype_of(Op("matmul"), fp32), DType::bf16);
    EXPECT_EQ(cuda.dtype_of(Op("matmul"), fp32, false, DType::bf16), DType::bf16);
}

TEST(TorchPolicy, ListedOpsRunInTheirDtype) {
    const Policy cuda = torch("cuda", "2.5");
    const DType half[] = {DType::fp16}, unknown[] = {DType::unknown};
    EXPECT_EQ(cuda.dtype_of(Op("exp"), half), DType::fp32);
    EXPECT_EQ(cuda.dtype_of(Op("softmax"), half), DType::fp32);
    EXPECT_EQ(cuda.dtype_of(Op("norm"), half), DType::fp32);
    EXPECT_EQ(cuda.dtype_of(Op("exp"), unknown), DType::fp32) << "the list decides, not the input";
    EXPECT_EQ(cuda.dtype_of(Op("exp"), {}), DType::fp32);
    EXPECT_EQ(cuda.dtype_of(Op("relu"), half), DType::fp16);
    EXPECT_EQ(cuda.dtype_of(Op("relu"), unknown), DType::unknown);
    EXPECT_EQ(cuda.dtype_of(Op("binary_cross_entropy"), half), DType::unknown);
}

TEST(TorchPolicy, AutocastWrapsNoInPlaceOp) {
    const Policy cuda = torch("cuda", "2.5");
    const DType half[] = {DType::fp16};
    const DType mixed[] = {DType::fp32, DType::fp16, DType::fp16};
    EXPECT_EQ(cuda.dtype_of(Op("exp"), half, true), DType::fp16);
    EXPECT_EQ(cuda.dtype_of(Op("exp"), half, false), DType::fp32);
    EXPECT_EQ(cuda.dtype_of(Op("addmm"), mixed, true), DType::fp32);
    EXPECT_EQ(cuda.dtype_of(Op("addmm"), mixed, false), DType::fp16);
}

TEST(TorchPolicy, AutocastLeavesFp64AndIntegersAlone) {
    const Policy cuda = torch("cuda", "2.5");
    const DType doubles[] = {DType::fp64, DType::fp64}, mixed[] = {DType::fp64, DType::fp32};
    const DType integers[] = {DType::int64}, weighted[] = {DType::fp32, DType::int64};
    EXPECT_EQ(cuda.dtype_of(Op("matmul"), doubles), DType::fp64);
    EXPECT_EQ(cuda.dtype_of(Op("matmul"), mixed), DType::unknown);
    EXPECT_EQ(cuda.dtype_of(Op("sum"), integers), DType::int64);
    EXPECT_EQ(cuda.dtype_of(Op("nll_loss"), weighted), DType::fp32);
}

TEST(TorchPolicy, PromotionTakesFp32AndRefusesTheOtherHalf) {
    const Policy cuda = torch("cuda", "2.5");
    const auto promoted = [&](std::vector<DType> inputs, DType low) {
        return cuda.dtype_of(Op("dot"), inputs, false, low);
    };
    using enum DType;
    EXPECT_EQ(promoted({fp16, fp32}, fp16), fp32);
    EXPECT_EQ(promoted({fp16, fp16}, fp16), fp16);
    EXPECT_EQ(promoted({bf16, bf16}, fp16), unknown) << "autocast raises";
    EXPECT_EQ(promoted({fp16, bf16}, fp16), unknown);
    EXPECT_EQ(promoted({fp16, unknown}, fp16), unknown);
    EXPECT_EQ(promoted({lowp, fp16}, fp16), lowp);
    EXPECT_EQ(promoted({fp64, fp32}, fp16), unknown) << "stays mixed";
    EXPECT_EQ(promoted({fp64, fp64}, fp16), fp64);
    EXPECT_EQ(promoted({e4m3, fp16}, fp16), unknown);
    EXPECT_EQ(promoted({fp16, int64}, fp16), fp16) << "integers do not decide";
    EXPECT_EQ(promoted({}, fp16), unknown);
}

TEST(TorchPolicy, UnlistedOpsWithSeveralDtypesAreUnknown) {
    const Policy cuda = torch("cuda", "2.5");
    const DType mixed[] = {DType::fp16, DType::fp32}, same[] = {DType::fp16, DType::fp16};
    const DType indexed[] = {DType::int64, DType::fp16};
    EXPECT_EQ(cuda.dtype_of(Op("add"), mixed), DType::unknown);
    EXPECT_EQ(cuda.dtype_of(Op("add"), same), DType::fp16);
    EXPECT_EQ(cuda.dtype_of(Op("embedding"), indexed), DType::fp16);
    EXPECT_EQ(cuda.dtype_of(Op(), same), DType::fp16) << "an op nobody knows is unlisted";
}

}  // namespace
}  // namespace mp
