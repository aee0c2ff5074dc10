#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fake_machine.hpp"
#include "runtime/launch/doctor/sections.hpp"

namespace mp::launch::doctor {
namespace {

using testing::HasSubstr;
using Leaf = std::pair<std::uint32_t, std::uint32_t>;
using Registers = std::array<std::uint32_t, 4>;

constexpr std::uint64_t kYmm = 0x7, kZmm = 0xe7, kTiles = 0x600e7;
constexpr std::uint32_t kAvx2 = 1u << 5;
constexpr std::uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;

// A processor with AVX2, FMA and F16C, and further bits in leaf 7.
struct Processor {
    std::uint64_t saved = kYmm;
    std::uint32_t ebx7 = kAvx2, edx7 = 0, eax71 = 0, edx71 = 0;
};

Machine with(const Processor& cpu) {
    Machine machine = fake_machine({});
    machine.architecture = "x86_64";
    machine.processors = 8;
    machine.xgetbv = [cpu] { return cpu.saved; };
    std::map<Leaf, Registers> leaves;
    leaves[{0, 0}] = {7, 0, 0, 0};
    std::memcpy(&leaves[{0, 0}][1], "Genu", 4);
    std::memcpy(&leaves[{0, 0}][3], "ineI", 4);
    std::memcpy(&leaves[{0, 0}][2], "ntel", 4);
    leaves[{1, 0}] = {0, 0, 1u << 27 | 1u << 12 | 1u << 29, 0};
    leaves[{7, 0}] = {1, cpu.ebx7, 0, cpu.edx7};
    leaves[{7, 1}] = {cpu.eax71, 0, 0, cpu.edx71};
    leaves[{0x80000000u, 0}] = {0x80000004u, 0, 0, 0};
    std::memcpy(&leaves[{0x80000002u, 0}], "  Some CPU 9000 ", 16);
    machine.cpuid = [leaves](std::uint32_t leaf, std::uint32_t subleaf) {
        const auto found = leaves.find({leaf, subleaf});
        return found == leaves.end() ? Registers{} : found->second;
    };
    return machine;
}

Line bf16_of(const Processor& cpu) {
    return line_of(cpu_section(probe_cpu(with(cpu)), {}, {}), "bf16 matrix products");
}
Line fp16_of(const Processor& cpu) {
    return line_of(cpu_section(probe_cpu(with(cpu)), {}, {}), "fp16 matrix products");
}

TEST(Cpu, WithAvx2OnlyBf16IsAScalarLoopAndTheFigureSaysWhereItIsFrom) {
    const Line line = bf16_of({});
    EXPECT_EQ(line.verdict, Verdict::warn);
    EXPECT_THAT(line.value, HasSubstr("about 24 times slower than fp32"));
    EXPECT_THAT(line.value, HasSubstr("not on this one"));
}

TEST(Cpu, EachInstructionThatMakesBf16FastIsSeen) {
    EXPECT_THAT(bf16_of({.saved = kZmm, .ebx7 = kAvx2 | kAvx512, .eax71 = 1u << 5}).value,
                HasSubstr("AVX512_BF16"));
    EXPECT_THAT(bf16_of({.saved = kTiles, .ebx7 = kAvx2 | kAvx512, .edx7 = 1u << 22 | 1u << 24}).value,
                HasSubstr("AMX_BF16"));
    EXPECT_EQ(bf16_of({.saved = kZmm, .ebx7 = kAvx2 | kAvx512, .eax71 = 1u << 5}).verdict, Verdict::ok);
    const Line plain = bf16_of({.saved = kZmm, .ebx7 = kAvx2 | kAvx512});
    EXPECT_EQ(plain.verdict, Verdict::warn);
    EXPECT_THAT(plain.value, HasSubstr("widened to fp32"));
}

TEST(Cpu, AnInstructionWhoseRegistersTheSystemDoesNotSaveDoesNotCount) {
    EXPECT_THAT(bf16_of({.saved = kYmm, .ebx7 = kAvx2 | kAvx512, .eax71 = 1u << 5}).value,
                HasSubstr("scalar loop"));
    EXPECT_THAT(bf16_of({.saved = kZmm, .ebx7 = kAvx2 | kAvx512, .edx7 = 1u << 22 | 1u << 24}).value,
                HasSubstr("widened to fp32"));
    EXPECT_FALSE(probe_cpu(with({.saved = 0})).avx2);
}

TEST(Cpu, Fp16HasInstructionsOfItsOwn) {
    EXPECT_EQ(fp16_of({}).verdict, Verdict::warn);
    EXPECT_THAT(fp16_of({}).value, HasSubstr("F16C only converts"));
    EXPECT_THAT(fp16_of({.saved = kZmm, .ebx7 = kAvx2 | kAvx512, .edx7 = 1u << 23}).value,
                HasSubstr("AVX512_FP16"));
    EXPECT_THAT(fp16_of({.saved = kTiles, .edx7 = 1u << 24, .eax71 = 1u << 21}).value, HasSubstr("AMX_FP16"));
}

TEST(Cpu, TheNameAndTheCoresAreShown) {
    const CpuFacts facts = probe_cpu(with({}));
    EXPECT_EQ(facts.vendor, "GenuineIntel");
    EXPECT_EQ(facts.brand, "Some CPU 9000");
    EXPECT_EQ(line_of(cpu_section(facts, {}, {}), "cores for this process").value, "8");
}

TEST(Cpu, ArmIsAskedThroughItsOwnFlags) {
    Machine machine = fake_machine({});
    machine.architecture = "aarch64";
    machine.hwcap = 1u << 10;
    machine.hwcap2 = 1u << 14;
    const CpuFacts facts = probe_cpu(machine);
    EXPECT_TRUE(facts.arm_bf16);
    EXPECT_TRUE(facts.arm_fp16);
    machine.hwcap = machine.hwcap2 = 0;
    EXPECT_EQ(line_of(cpu_section(probe_cpu(machine), {}, {}), "bf16 matrix products").verdict,
              Verdict::note);
}

TEST(Cpu, MemoryIsThatOfTheControlGroupWhenItIsLess) {
    Machine machine = with({});
    machine.read_file = [](const std::string& path) -> std::string {
        if (path == "/proc/meminfo") return "MemTotal:       33554432 kB\nMemAvailable:   16777216 kB\n";
        if (path == "/proc/self/cgroup") return "0::/job.slice/step\n";
        if (path == "/sys/fs/cgroup/job.slice/step/memory.max") return "max\n";
        if (path == "/sys/fs/cgroup/job.slice/memory.max") return "4294967296\n";
        return "";
    };
    const CpuFacts facts = probe_cpu(machine);
    EXPECT_EQ(facts.limit_bytes, 4294967296u);
    const Section section = cpu_section(facts, {}, {});
    EXPECT_EQ(line_of(section, "memory").value, "32.0 GiB, of which 16.0 GiB available");
    EXPECT_EQ(line_of(section, "memory limit").value, "4.0 GiB, set by the control group");
}

TEST(Cpu, AControlGroupWithoutALimitIsNoLimit) {
    for (const char* const groups : {"", "0::/\n", "0::", "12:memory:/x\n", "0::/a//b/\n"}) {
        Machine machine = with({});
        machine.read_file = [groups](const std::string& path) -> std::string {
            if (path == "/proc/self/cgroup") return groups;
            if (path.ends_with("memory.limit_in_bytes")) return "9223372036854771712\n";
            return path == "/proc/meminfo" ? "MemTotal: 1024 kB\n" : "max\n";
        };
        EXPECT_EQ(probe_cpu(machine).limit_bytes, 0u) << groups;
    }
}

TEST(Cpu, AVariableThatLowersFp32OrHidesInstructionsIsSaid) {
    const EnvironmentFacts set{
        .variables = {{"ONEDNN_DEFAULT_FPMATH_MODE", "BF16"}, {"ATEN_CPU_CAPABILITY", "avx2"}}};
    const Section section = cpu_section(probe_cpu(with({})), {}, set);
    EXPECT_EQ(line_of(section, "ONEDNN_DEFAULT_FPMATH_MODE").verdict, Verdict::warn);
    EXPECT_EQ(line_of(section, "ATEN_CPU_CAPABILITY").verdict, Verdict::warn);
    const EnvironmentFacts strict{.variables = {{"ONEDNN_DEFAULT_FPMATH_MODE", "STRICT"}}};
    EXPECT_EQ(line_of(cpu_section({}, {}, strict), "ONEDNN_DEFAULT_FPMATH_MODE").verdict, Verdict::ok);
}

TEST(Cpu, TheRealMachineAnswers) {
    const CpuFacts facts = probe_cpu(this_machine());
    EXPECT_FALSE(facts.architecture.empty());
    EXPECT_GT(facts.processors, 0);
    EXPECT_GT(facts.memory_bytes, facts.available_bytes);
}

}  // namespace
}  // namespace mp::launch::doctor
