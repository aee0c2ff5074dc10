#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "runtime/launch/doctor/sections.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;

const GpuFacts kV100{.name = "Tesla V100-SXM2-32GB", .major = 7, .minor = 0};
const GpuFacts kT4{.name = "Tesla T4", .major = 7, .minor = 5};
const GpuFacts kA100{.name = "NVIDIA A100-SXM4-80GB", .major = 8, .minor = 0};
const GpuFacts kH100{.name = "NVIDIA H100 80GB HBM3", .major = 9, .minor = 0};

Section bf16_on(FakeCuda cuda, const TorchFacts& torch = cuda_torch(true)) {
    return bf16_section(torch, ask_cuda(fake_machine(std::move(cuda)), {}));
}

TEST(Bf16, AnA100AndAnH100AreNativeAndEveryConditionHasALineThatSaysSo) {
    for (const GpuFacts& gpu : {kA100, kH100}) {
        const Section section = bf16_on({.gpus = {gpu}});
        for (const char* const key :
             {"CUDA driver >= 11.0", "CUDA runtime >= 11.0", "torch.version.cuda >= 11.0",
              "GPU 0, capability >= 8.0", "dist.is_nccl_available()", "NCCL >= 2.10",
              "torch.cuda.is_bf16_supported()", "bf16 training on GPUs here"})
            EXPECT_EQ(line_of(section, key).verdict, Verdict::ok)
                << key << ": " << line_of(section, key).value;
        EXPECT_THAT(line_of(section, "GPU 0, capability >= 8.0").value, HasSubstr("native bf16"));
    }
}

TEST(Bf16, AV100IsEmulatedThoughTorchSaysItIsSupported) {
    const Section section = bf16_on({.gpus = {kV100}});
    const Line gpu = line_of(section, "GPU 0, capability >= 8.0");
    EXPECT_EQ(gpu.verdict, Verdict::no);
    EXPECT_THAT(gpu.value, HasSubstr("7.0: bf16 is emulated, slower than fp32"));
    const Line torch = line_of(section, "torch.cuda.is_bf16_supported()");
    EXPECT_EQ(torch.verdict, Verdict::warn);
    EXPECT_THAT(torch.value, HasSubstr("True: it counts emulation"));
    const Line answer = line_of(section, "bf16 training on GPUs here");
    EXPECT_EQ(answer.verdict, Verdict::warn);
    EXPECT_THAT(answer.value, HasSubstr("runs, but emulated: slower than fp32; fails: GPU 0"));
}

TEST(Bf16, AMixedMachineSaysWhichGpuIsWhich) {
    const Section section = bf16_on({.gpus = {kA100, kT4}});
    EXPECT_EQ(line_of(section, "GPU 0, capability >= 8.0").verdict, Verdict::ok);
    EXPECT_EQ(line_of(section, "GPU 1, capability >= 8.0").verdict, Verdict::no);
    EXPECT_THAT(line_of(section, "bf16 training on GPUs here").value, HasSubstr("native on some GPUs"));
}

TEST(Bf16, ADriverBeforeCuda11IsTooOld) {
    const Section section = bf16_on({.driver_version = 10020, .runtime_version = 10020, .gpus = {kV100}});
    const Line driver = line_of(section, "CUDA driver >= 11.0");
    EXPECT_EQ(driver.verdict, Verdict::no);
    EXPECT_EQ(driver.value, "10.2");
    EXPECT_THAT(driver.hint, HasSubstr("update the NVIDIA driver"));
    EXPECT_EQ(line_of(section, "CUDA runtime >= 11.0").verdict, Verdict::no);
    EXPECT_EQ(line_of(section, "bf16 training on GPUs here").verdict, Verdict::no);
}

TEST(Bf16, ADriverOlderThanTheRuntimesMajorVersionDoesNotServeIt) {
    const Line newer = line_of(bf16_on({.driver_version = 11080, .runtime_version = 12080, .gpus = {kA100}}),
                               "CUDA runtime >= 11.0");
    EXPECT_EQ(newer.verdict, Verdict::no);
    EXPECT_THAT(newer.value, HasSubstr("newer than the driver, which serves up to 11.8"));
    const Line same = line_of(bf16_on({.driver_version = 12020, .runtime_version = 12080, .gpus = {kA100}}),
                              "CUDA runtime >= 11.0");
    EXPECT_EQ(same.verdict, Verdict::ok);
}

TEST(Bf16, NcclIsJudgedInBothOfItsNumberings) {
    TorchFacts torch = cuda_torch(true);
    torch.nccl_version.clear();  // then the library's own number counts
    struct Case {
        int number;
        const char* text;
        Verdict verdict;
    };
    for (const Case& c : {Case{2804, "2.8.4", Verdict::no}, Case{20906, "2.9.6", Verdict::no},
                          Case{20999, "2.9.99", Verdict::no}, Case{21000, "2.10.0", Verdict::ok},
                          Case{21003, "2.10.3", Verdict::ok}, Case{22809, "2.28.9", Verdict::ok}}) {
        const Line line =
            line_of(bf16_on({.nccl_version = c.number, .gpus = {kA100}}, torch), "NCCL >= 2.10");
        EXPECT_EQ(line.verdict, c.verdict) << c.number;
        EXPECT_THAT(line.value, HasSubstr(c.text));
    }
}

TEST(Bf16, TheNcclInsideTorchIsTheOneThatCounts) {
    TorchFacts torch = cuda_torch(true);
    torch.nccl_version = {2, 9, 6};
    const Line old = line_of(bf16_on({.nccl_version = 22809, .gpus = {kA100}}, torch), "NCCL >= 2.10");
    EXPECT_EQ(old.verdict, Verdict::no);
    EXPECT_THAT(old.value, HasSubstr("2.9.6 (torch.cuda.nccl.version()), while libnccl.so.2 is 2.28.9"));
    const Line other = line_of(bf16_on({.nccl_version = 20906, .gpus = {kA100}}), "NCCL >= 2.10");
    EXPECT_EQ(other.verdict, Verdict::warn);
}

TEST(Bf16, EachMissingLibraryIsSaidWithWhatTurnsItOn) {
    TorchFacts torch = cuda_torch(false);
    torch.nccl_version.clear();
    const Section section = bf16_on({.driver = false, .runtime = false, .nccl = false}, torch);
    for (const char* const key : {"CUDA driver >= 11.0", "CUDA runtime >= 11.0", "NCCL >= 2.10"}) {
        const Line line = line_of(section, key);
        EXPECT_EQ(line.verdict, Verdict::no) << key;
        EXPECT_THAT(line.value, HasSubstr("not found")) << key;
        EXPECT_FALSE(line.hint.empty()) << key;
    }
    EXPECT_EQ(line_of(section, "GPU, capability >= 8.0").verdict, Verdict::no);
}

TEST(Bf16, AToolkitsStubAndADriverWithoutAGpuAreNamed) {
    EXPECT_THAT(line_of(bf16_on({.init = 34}), "CUDA driver >= 11.0").value, HasSubstr("the toolkit's stub"));
    const Line none = line_of(bf16_on({.init = 100}), "CUDA driver >= 11.0");
    EXPECT_EQ(none.verdict, Verdict::no);
    EXPECT_THAT(none.value, HasSubstr("13.0, but cuInit answers 100: there is no GPU"));
}

TEST(Bf16, ATorchWithoutCudaOrWithRocmOrNoneFailsItsConditions) {
    TorchFacts cpu = cuda_torch(false);
    cpu.cuda_built.clear();
    cpu.nccl = false;
    EXPECT_THAT(line_of(bf16_on({.gpus = {kA100}}, cpu), "torch.version.cuda >= 11.0").value,
                HasSubstr("built without CUDA"));
    EXPECT_EQ(line_of(bf16_on({.gpus = {kA100}}, cpu), "dist.is_nccl_available()").verdict, Verdict::no);
    TorchFacts rocm = cpu;
    rocm.hip_built = "6.2";
    EXPECT_THAT(line_of(bf16_on({}, rocm), "torch.version.cuda >= 11.0").value, HasSubstr("ROCm 6.2"));
    EXPECT_EQ(line_of(bf16_on({.gpus = {kA100}}, TorchFacts{}), "bf16 training on GPUs here").verdict,
              Verdict::no);
    TorchFacts old = cuda_torch(true);
    old.cuda_built = "10.2";
    EXPECT_EQ(line_of(bf16_on({.gpus = {kA100}}, old), "torch.version.cuda >= 11.0").verdict, Verdict::no);
}

TEST(Bf16, LibrariesThatLackAnyFunctionOrFailInAnyCallGiveLinesAndNoCrash) {
    for (const char* const function :
         {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
          "cuDeviceGetAttribute", "cudaRuntimeGetVersion", "ncclGetVersion"}) {
        const Section section = bf16_on({.missing = {function}, .gpus = {kA100}});
        const bool harmless =
            std::string(function) == "cuDeviceGetName" || std::string(function) == "ncclGetVersion";
        EXPECT_EQ(line_of(section, "bf16 training on GPUs here").verdict,
                  harmless ? Verdict::ok : Verdict::no)
            << function;
    }
    for (const int status : {-1, 1, 3, 100, 101, 201, 304, 802, 803, 804, 999, 2147483647}) {
        for (const bool early : {true, false}) {
            FakeCuda cuda{.gpus = {kA100, kV100}};
            (early ? cuda.init : cuda.every_other) = status;
            EXPECT_EQ(line_of(bf16_on(cuda), "bf16 training on GPUs here").verdict, Verdict::no) << status;
        }
    }
}

TEST(Bf16, WhatAProbeSaysArrivesUnchangedFromItsChild) {
    const CudaFacts sent = ask_cuda(fake_machine({.nccl = false, .init = 0, .gpus = {kA100, kV100}}), {});
    const CudaFacts got = cuda_from_message(to_message(sent));
    EXPECT_EQ(to_message(got), to_message(sent));
    ASSERT_EQ(got.gpus.size(), 2u);
    EXPECT_EQ(got.gpus[1].name, kV100.name);
    const CudaFacts forked = probe_cuda(fake_machine({.gpus = {kH100}}), {});
    EXPECT_EQ(forked.fault, "");
    ASSERT_EQ(forked.gpus.size(), 1u);
    EXPECT_EQ(forked.gpus[0].major, 9);
}

TEST(Bf16, AnAnswerThatIsNotReadableIsAFault) {
    for (const char* const text : {"", "[]", "{", "3", "\"driver\""})
        EXPECT_NE(cuda_from_message(text).fault, "") << text;
    const CudaFacts odd =
        cuda_from_message(R"({"driver": [1], "gpus": {"a": 1}, "nccl": {"version": 1e99}})");
    EXPECT_EQ(odd.driver.version, 0);
    EXPECT_EQ(odd.nccl.version, 0);
}

TEST(Bf16, ADriverThatCrashesIsSaidAndNotFatal) {
    Machine machine = fake_machine({});
    machine.open = [](const char*, std::string&) -> void* { __builtin_trap(); };
    const Section section = bf16_section(cuda_torch(true), probe_cuda(machine, {}));
    ASSERT_EQ(section.lines.size(), 1u);
    EXPECT_EQ(section.lines[0].verdict, Verdict::no);
    EXPECT_THAT(section.lines[0].value, HasSubstr("killed by signal"));
}

TEST(Bf16, TorchsOwnLibrariesAreLookedAtBeforeTheSystems) {
    Machine machine = fake_machine({});
    std::vector<std::string> tried;
    machine.open = [&](const char* name, std::string&) -> void* {
        tried.push_back(name);
        return nullptr;
    };
    ask_cuda(machine, {"/site/nvidia/nccl/lib"});
    const auto at = [&](const char* name) {
        return std::find(tried.begin(), tried.end(), name) - tried.begin();
    };
    EXPECT_LT(at("/site/nvidia/nccl/lib/libnccl.so.2"), at("libnccl.so.2"));
    EXPECT_LT(at("libnccl.so.2"), static_cast<std::ptrdiff_t>(tried.size()));
}

}  // namespace
}  // namespace mp::launch::doctor
