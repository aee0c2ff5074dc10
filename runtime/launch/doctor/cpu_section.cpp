#include <array>
#include <string_view>

#include "runtime/launch/doctor/sections.hpp"

namespace mp::launch::doctor {
namespace {

std::string gib(std::uint64_t bytes) {
    const std::uint64_t tenths = (bytes * 10 + (1u << 29)) >> 30;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::string instructions(const CpuFacts& cpu) {
    const std::array<std::pair<bool, std::string_view>, 11> known = {{{cpu.avx2, "AVX2"},
                                                                      {cpu.fma, "FMA"},
                                                                      {cpu.f16c, "F16C"},
                                                                      {cpu.avx_ne_convert, "AVX_NE_CONVERT"},
                                                                      {cpu.avx512, "AVX512"},
                                                                      {cpu.avx512_bf16, "AVX512_BF16"},
                                                                      {cpu.avx512_fp16, "AVX512_FP16"},
                                                                      {cpu.amx_bf16, "AMX_BF16"},
                                                                      {cpu.amx_fp16, "AMX_FP16"},
                                                                      {cpu.arm_bf16, "BF16"},
                                                                      {cpu.arm_fp16, "FP16"}}};
    std::string list;
    for (const auto& [has, name] : known)
        if (has) list += (list.empty() ? "" : " ") + std::string(name);
    return list.empty() ? "none that matters for bf16 or fp16" : list;
}

Line bf16_line(const CpuFacts& cpu) {
    Line line{.key = "bf16 matrix products", .verdict = Verdict::ok};
    if (cpu.amx_bf16) {
        line.value = "fast: AMX_BF16 multiplies tiles of bf16 and adds up in fp32";
    } else if (cpu.avx512_bf16) {
        line.value = "fast: AVX512_BF16 multiplies pairs of bf16 and adds up in fp32";
    } else if (cpu.arm_bf16) {
        line.value = "fast: the processor's BF16 instructions add up in fp32";
    } else if (cpu.avx512) {
        line.verdict = Verdict::warn;
        line.value = "slow: without AVX512_BF16 every bf16 is widened to fp32 first";
        line.hint = "fp32 is the faster format on this CPU";
    } else if (cpu.architecture == "x86_64") {
        line.verdict = Verdict::warn;
        line.value =
            "very slow: without AVX-512 they fall back to a scalar loop, about 24 times slower than fp32 "
            "(measured on an AVX2 machine, not on this one)";
        line.hint = "keep models that are tried out here small (width <= 64), or use fp32";
    } else {
        line.verdict = Verdict::note;
        line.value = "not known for this CPU: no bf16 instruction was found";
    }
    return line;
}

Line fp16_line(const CpuFacts& cpu) {
    Line line{.key = "fp16 matrix products", .verdict = Verdict::ok};
    if (cpu.amx_fp16) {
        line.value = "fast: AMX_FP16, adding up in fp32";
    } else if (cpu.avx512_fp16) {
        line.value = "fast: AVX512_FP16";
    } else if (cpu.arm_fp16) {
        line.value = "fast: the processor's FP16 instructions";
    } else {
        line.verdict = Verdict::warn;
        line.value =
            cpu.f16c ? "slow: no fp16 arithmetic, F16C only converts" : "slow: no fp16 instruction at all";
        line.hint = "fp16 on this CPU is for trying things out, not for speed";
    }
    return line;
}

// The default mode of oneDNN's fp32 operations: it applies to programs that never select bf16.
void add_fpmath_line(const EnvironmentFacts& environment, std::vector<Line>& lines) {
    for (const char* const name : {"ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"}) {
        const auto found = environment.variables.find(name);
        if (found == environment.variables.end()) continue;
        const bool strict = found->second == "STRICT" || found->second == "strict" || found->second.empty();
        lines.push_back(
            {.key = name,
             .verdict = strict ? Verdict::ok : Verdict::warn,
             .value = found->second + (strict ? "" : ": fp32 matrix products may run in a lower format"),
             .hint = strict ? "" : "unset it for a true fp32 twin on the CPU"});
    }
}

void add_limit_lines(const EnvironmentFacts& environment, std::vector<Line>& lines) {
    for (const char* const name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"}) {
        const auto found = environment.variables.find(name);
        if (found != environment.variables.end())
            lines.push_back({.key = name,
                             .verdict = Verdict::warn,
                             .value = found->second + ": torch does not use all instructions of this CPU",
                             .hint = "unset it if bf16 is slower than it should be"});
    }
}

}  // namespace

Section cpu_section(const CpuFacts& cpu, const TorchFacts& torch, const EnvironmentFacts& environment) {
    Section section{.name = "cpu"};
    std::vector<Line>& lines = section.lines;
    std::string name = cpu.brand.empty() ? cpu.vendor : cpu.brand;
    if (name.empty()) name = "unnamed";
    lines.push_back({.key = "processor", .value = name + " (" + cpu.architecture + ")"});
    lines.push_back({.key = "instructions", .value = instructions(cpu)});
    lines.push_back(bf16_line(cpu));
    lines.push_back(fp16_line(cpu));
    if (torch.mkldnn_bf16) {
        const bool uses = *torch.mkldnn_bf16;
        lines.push_back(
            {.key = "torch uses them for bf16",
             .verdict = uses ? Verdict::ok : Verdict::warn,
             .value = std::string(uses ? "yes" : "no") + " (torch.ops.mkldnn._is_mkldnn_bf16_supported)"});
    }
    if (!torch.cpu_capability.empty())
        lines.push_back({.key = "torch's own kernels", .value = torch.cpu_capability});
    add_fpmath_line(environment, lines);
    add_limit_lines(environment, lines);
    lines.push_back({.key = "cores for this process", .value = std::to_string(cpu.processors)});
    if (cpu.memory_bytes)
        lines.push_back(
            {.key = "memory",
             .value = gib(cpu.memory_bytes) + ", of which " + gib(cpu.available_bytes) + " available"});
    if (cpu.limit_bytes && cpu.limit_bytes < cpu.memory_bytes)
        lines.push_back({.key = "memory limit",
                         .verdict = Verdict::warn,
                         .value = gib(cpu.limit_bytes) + ", set by the control group",
                         .hint = "a twin adds 16 B per parameter and 4 B per live activation element"});
    return section;
}

}  // namespace mp::launch::doctor
