#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/doctor/sections.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;

Line line_of(const ProgramFacts& facts, std::string_view key) {
    const Section section = program_section(facts);
    const auto at = std::ranges::find(section.lines, key, &Line::key);
    return at == section.lines.end() ? Line{} : *at;
}

TEST(Program, SharedLibrariesAreSeen) {
    const ProgramFacts facts{
        .path = "./train", .nvtx = true, .opens_driver = true, .cublas_lt = true, .nccl = true};
    EXPECT_EQ(line_of(facts, "cuBLAS").verdict, Verdict::ok);
    EXPECT_EQ(line_of(facts, "NCCL").verdict, Verdict::ok);
    EXPECT_EQ(line_of(facts, "NVTX").verdict, Verdict::ok);
    EXPECT_THAT(line_of(facts, "CUDA runtime").value, HasSubstr("statically"));
    EXPECT_EQ(line_of(facts, "CUDA runtime").verdict, Verdict::ok);
}

TEST(Program, StaticLibrariesAreNot) {
    const ProgramFacts facts{.path = "./train", .static_cublas = true, .static_nccl = true};
    EXPECT_EQ(line_of(facts, "cuBLAS").verdict, Verdict::warn);
    EXPECT_THAT(line_of(facts, "NCCL").hint, HasSubstr("-lnccl"));
    EXPECT_EQ(line_of(facts, "NVTX").verdict, Verdict::warn);
    EXPECT_FALSE(traceable({{program_section({.path = "./train", .is_static = true})}}));
}

TEST(Program, TheVersionOfNcclIsThatOfItsText) {
    const volatile char* const text = "NCCL version 9.87.6+cuda13.0";
    ASSERT_EQ(text[0], 'N');
    EXPECT_EQ(probe_program("/proc/self/exe").nccl_version, "9.87.6");
    const ProgramFacts facts{.path = "./train", .static_nccl = true, .nccl_version = "2.28.9"};
    EXPECT_THAT(line_of(facts, "NCCL").value, HasSubstr("version 2.28.9"));
    EXPECT_THAT(line_of(facts, "NCCL").value, HasSubstr("profiler interface"));
}

TEST(Program, PlacesOfToolsAreFreeOrTaken) {
    const ProgramFacts facts{
        .path = "./train", .places = {{"NCCL_PROFILER_PLUGIN", "/other.so"}, {"CUDA_INJECTION64_PATH", ""}}};
    EXPECT_EQ(line_of(facts, "CUDA_INJECTION64_PATH").verdict, Verdict::ok);
    EXPECT_EQ(line_of(facts, "NCCL_PROFILER_PLUGIN").verdict, Verdict::warn);
    EXPECT_THAT(line_of(facts, "NCCL_PROFILER_PLUGIN").value, HasSubstr("/other.so"));
}

TEST(Program, TheVersionOfNvtxIsTold) {
    EXPECT_THAT(line_of({.path = "./train", .nvtx = true}, "NVTX").value, HasSubstr("version 3"));
    const Line two = line_of({.path = "./train", .nvtx2 = true}, "NVTX");
    EXPECT_THAT(two.value, HasSubstr("never tried"));
    EXPECT_NE(two.verdict, Verdict::ok);
    const volatile char* const text = "libnvToolsExt.so.1";
    ASSERT_EQ(text[0], 'l');
    EXPECT_TRUE(probe_program("/proc/self/exe").nvtx2);
}

TEST(Program, ARecordingTellsDomainsAndRanks) {
    RecordingFacts facts;
    facts.path = "run";
    trace::ProcessRecord& process = facts.processes.emplace_back();
    process.pid = 7;
    process.framework = trace::kRawFramework;
    process.members = "rank 0 on device 0, rank 1 on device 1 of communicator 9f3c";
    process.nvtx_domains = "NCCL (of a library), training";
    facts.missing = {"CUPTI gave error 39, its place is held by 'nsys': launches are not seen"};
    const std::vector<Line> lines = recording_section(facts).lines;
    const auto value_of = [&lines](std::string_view key) {
        const auto at = std::ranges::find(lines, key, &Line::key);
        return at == lines.end() ? std::string() : at->value;
    };
    EXPECT_EQ(value_of("  NVTX domains"), process.nvtx_domains);
    EXPECT_EQ(value_of("  ranks of NCCL"), process.members);
    EXPECT_THAT(value_of("not seen"), HasSubstr("nsys"));
    EXPECT_FALSE(probe_recording("/no/such/run").fault.empty());
}

TEST(Program, FilesThatAreNoProgram) {
    EXPECT_THAT(probe_program("/etc/passwd").fault, HasSubstr("ELF"));
    EXPECT_FALSE(probe_program("/no/such/file").fault.empty());
    const ProgramFacts own = probe_program("/proc/self/exe");
    EXPECT_EQ(own.fault, "");
    EXPECT_TRUE(own.nvtx) << "this test names the texts that the probe looks for";
    EXPECT_FALSE(own.is_static);
}

}  // namespace
}  // namespace mp::launch::doctor
