#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "runtime/launch/doctor/sections.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;

CudaFacts with_gpu(int major) {
    CudaFacts cuda;
    if (major) cuda.gpus.push_back({.name = "GPU", .major = major, .minor = 0});
    return cuda;
}

TorchFacts with_switch(const char* name, const char* value) {
    TorchFacts torch = cuda_torch(true);
    torch.switches[name] = value;
    return torch;
}

EnvironmentFacts with_variable(const char* name, const char* value) { return {.variables = {{name, value}}}; }

TEST(Tf32, ASwitchThatIsOnWarnsOnlyWhereAGpuHasTf32) {
    const TorchFacts on = with_switch("cudnn.allow_tf32", "True");
    const Line ampere = line_of(tf32_section(on, {}, with_gpu(8)), "cudnn.allow_tf32");
    EXPECT_EQ(ampere.verdict, Verdict::warn);
    EXPECT_THAT(ampere.hint, HasSubstr("NVIDIA_TF32_OVERRIDE=0"));
    EXPECT_EQ(line_of(tf32_section(on, {}, with_gpu(7)), "cudnn.allow_tf32").verdict, Verdict::note);
    EXPECT_EQ(line_of(tf32_section(on, {}, with_gpu(0)), "cudnn.allow_tf32").verdict, Verdict::note);
    EXPECT_EQ(
        line_of(tf32_section(with_switch("cudnn.allow_tf32", "False"), {}, with_gpu(8)), "cudnn.allow_tf32")
            .verdict,
        Verdict::ok);
}

TEST(Tf32, TheNewSwitchesAreReadByTheirValues) {
    for (const char* const value : {"none", "ieee", "highest", "False"})
        EXPECT_EQ(line_of(tf32_section(with_switch("cuda.matmul.fp32_precision", value), {}, with_gpu(9)),
                          "cuda.matmul.fp32_precision")
                      .verdict,
                  Verdict::ok)
            << value;
    for (const char* const value : {"tf32", "bf16", "bf16x3", "high", "medium", "True"})
        EXPECT_EQ(line_of(tf32_section(with_switch("cuda.matmul.fp32_precision", value), {}, with_gpu(9)),
                          "cuda.matmul.fp32_precision")
                      .verdict,
                  Verdict::warn)
            << value;
}

TEST(Tf32, ASwitchOfTheCpuCountsWithoutAGpu) {
    const TorchFacts torch = with_switch("mkldnn.matmul.fp32_precision", "bf16");
    EXPECT_EQ(line_of(tf32_section(torch, {}, with_gpu(0)), "mkldnn.matmul.fp32_precision").verdict,
              Verdict::warn);
}

TEST(Tf32, TheOverrideOfTheLibrariesWinsOverTheProgram) {
    const TorchFacts on = with_switch("cudnn.allow_tf32", "True");
    const Section forced_off = tf32_section(on, with_variable("NVIDIA_TF32_OVERRIDE", "0"), with_gpu(8));
    EXPECT_EQ(line_of(forced_off, "NVIDIA_TF32_OVERRIDE").verdict, Verdict::ok);
    EXPECT_EQ(line_of(forced_off, "cudnn.allow_tf32").verdict, Verdict::note);
    for (const char* const name : {"NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"}) {
        const Line line = line_of(tf32_section(on, with_variable(name, "1"), with_gpu(8)), name);
        EXPECT_EQ(line.verdict, Verdict::warn);
        EXPECT_THAT(line.hint, HasSubstr("unset it"));
    }
}

TEST(Tf32, WithoutTorchThereAreTheVariablesAndASentence) {
    const Section section = tf32_section({}, {}, {});
    EXPECT_EQ(line_of(section, "torch's switches").value, "no torch to ask");
    EXPECT_EQ(line_of(section, "NVIDIA_TF32_OVERRIDE").value, "not set");
}

}  // namespace
}  // namespace mp::launch::doctor
