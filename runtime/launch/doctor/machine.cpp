#include <cstdlib>
#include <thread>

#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/base/input_file.hpp"
#include "runtime/launch/doctor/probe.hpp"

namespace mp::launch::doctor {
namespace {

void* open_library(const char* name, std::string& why) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library) return library;
    const char* const words = dlerror();
    why = words ? words : "not found";
    return nullptr;
}

std::array<std::uint32_t, 4> cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
    std::array<std::uint32_t, 4> r{};
#if defined(__x86_64__)
    if (__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) == 0) return {};
#else
    (void)leaf, (void)subleaf;
#endif
    return r;
}

std::uint64_t xgetbv() {
#if defined(__x86_64__)
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (std::uint64_t{high} << 32) | low;
#else
    return 0;
#endif
}

}  // namespace

Machine this_machine() {
    Machine machine;
    machine.open = open_library;
    machine.symbol = [](void* library, const char* name) { return dlsym(library, name); };
    machine.variable = [](const char* name) -> const char* { return std::getenv(name); };
    machine.cpuid = cpuid;
    machine.xgetbv = xgetbv;
    // Files of /proc and /sys: small, and with size 0 in stat.
    machine.read_file = [](const std::string& path) { return start_of_file(path, 1u << 16); };
    utsname names{};
    if (uname(&names) == 0) machine.architecture = names.machine;
    machine.hwcap = getauxval(AT_HWCAP);
    machine.hwcap2 = getauxval(AT_HWCAP2);
    machine.processors = static_cast<int>(std::thread::hardware_concurrency());
    return machine;
}

}  // namespace mp::launch::doctor
