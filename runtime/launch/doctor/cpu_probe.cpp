#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "runtime/launch/doctor/probe.hpp"

namespace mp::launch::doctor {
namespace {

bool bit(std::uint64_t word, int index) { return (word >> index) & 1u; }

enum Register { eax, ebx, ecx, edx };

void ask_x86(const Machine& machine, CpuFacts& facts) {
    const auto zero = machine.cpuid(0, 0);
    std::array<char, 13> vendor{};
    std::memcpy(vendor.data(), &zero[ebx], 4);
    std::memcpy(vendor.data() + 4, &zero[edx], 4);
    std::memcpy(vendor.data() + 8, &zero[ecx], 4);
    facts.vendor = vendor.data();
    if (machine.cpuid(0x80000000u, 0)[eax] >= 0x80000004u) {
        std::array<char, 49> brand{};
        for (std::uint32_t leaf = 0; leaf < 3; ++leaf)
            std::memcpy(brand.data() + 16 * leaf, machine.cpuid(0x80000002u + leaf, 0).data(), 16);
        const std::string text = brand.data();
        const std::size_t first = text.find_first_not_of(' ');
        if (first != std::string::npos)
            facts.brand = text.substr(first, text.find_last_not_of(' ') + 1 - first);
    }
    // An instruction set counts when the processor supports it and the system saves its registers. A
    // virtual machine often has the first but not the second.
    const auto one = machine.cpuid(1, 0);
    const std::uint64_t saved = bit(one[ecx], 27) ? machine.xgetbv() : 0;
    const bool ymm = (saved & 0x6u) == 0x6u, zmm = (saved & 0xe6u) == 0xe6u,
               tiles = (saved & 0x60000u) == 0x60000u;
    facts.fma = ymm && bit(one[ecx], 12);
    facts.f16c = ymm && bit(one[ecx], 29);
    if (zero[eax] < 7) return;
    const auto seven = machine.cpuid(7, 0);
    facts.avx2 = ymm && bit(seven[ebx], 5);
    facts.avx512 =
        zmm && bit(seven[ebx], 16) && bit(seven[ebx], 17) && bit(seven[ebx], 30) && bit(seven[ebx], 31);
    facts.avx512_fp16 = facts.avx512 && bit(seven[edx], 23);
    facts.amx_bf16 = tiles && bit(seven[edx], 24) && bit(seven[edx], 22);
    if (seven[eax] < 1) return;  // the last subleaf
    const auto more = machine.cpuid(7, 1);
    facts.avx512_bf16 = facts.avx512 && bit(more[eax], 5);
    facts.amx_fp16 = tiles && bit(seven[edx], 24) && bit(more[eax], 21);
    facts.avx_ne_convert = ymm && bit(more[edx], 5);
}

void ask_arm(const Machine& machine, CpuFacts& facts) {
    facts.arm_fp16 = bit(machine.hwcap, 10);   // HWCAP_ASIMDHP
    facts.arm_bf16 = bit(machine.hwcap2, 14);  // HWCAP2_BF16
}

std::uint64_t leading_number(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// "MemTotal:       24000000 kB" of /proc/meminfo, in bytes.
std::uint64_t memory_line(const std::string& text, std::string_view name) {
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0
                                   : leading_number(std::string_view(text).substr(at + name.size())) * 1024;
}

// The smallest limit from this process's control group up to the root, for version 2 or 1.
std::uint64_t group_limit(const Machine& machine) {
    constexpr std::uint64_t kNone = std::uint64_t{1} << 60;  // version 1 uses a number near 2^63 for "none"
    const std::string groups = machine.read_file("/proc/self/cgroup");
    std::string path;
    if (const std::size_t at = groups.find("0::/"); at != std::string::npos)
        path = groups.substr(at + 3, groups.find('\n', at) - at - 3);
    std::uint64_t limit = kNone;
    const auto look = [&](const std::string& file) {
        if (const std::uint64_t value = leading_number(machine.read_file(file)))
            limit = std::min(limit, value);
    };
    for (;;) {
        look("/sys/fs/cgroup" + (path == "/" ? std::string() : path) + "/memory.max");
        if (path.size() <= 1) break;
        path.erase(std::max<std::size_t>(path.rfind('/'), 1));
    }
    look("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    return limit == kNone || limit > kNone ? 0 : limit;
}

}  // namespace

CpuFacts probe_cpu(const Machine& machine) {
    CpuFacts facts;
    facts.architecture = machine.architecture;
    if (facts.architecture == "x86_64") ask_x86(machine, facts);
    if (facts.architecture == "aarch64") ask_arm(machine, facts);
    facts.processors = machine.processors;
    const std::string memory = machine.read_file("/proc/meminfo");
    facts.memory_bytes = memory_line(memory, "MemTotal:");
    facts.available_bytes = memory_line(memory, "MemAvailable:");
    facts.limit_bytes = group_limit(machine);
    return facts;
}

}  // namespace mp::launch::doctor
