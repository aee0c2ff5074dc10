#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp::launch {

// `mp-trace doctor`: shows what can be traced on this machine, and the reasons for what cannot. Every field
// has a usable default.
struct DoctorRequest {
    std::string python{};              // --python EXE; empty: python3 on PATH
    std::string program{};             // what would be seen of this CUDA program; nothing else is shown
    std::string sources{};             // --sources DIR: where the sources of such a program are
    std::vector<std::string> flags{};  // behind --: of its build
    std::string only{};                // --only SECTION, one of doctor_sections(); empty: all of them
    bool json = false;                 // --json
    bool self_test = false;            // --self-test: trace known operations and check what is recorded
    std::string prefix{};  // the directory of bin/mp-trace and lib/mp-trace; empty: found from the
                           // running program
    std::vector<std::string>
        adapters{};  // --adapters DIR..., searched before the installed and the cached ones
};

// "launcher", "environment", "torch", "tf32", "bf16", "cupti", "cpu", in the order they are printed.
std::span<const std::string_view> doctor_sections();

// Prints the report on stdout. Returns 0 when torch programs can be traced here, 1 when they cannot or the
// self-test failed, 2 when `only` is not a section. With `only`, the section's own lines decide. The time
// is limited by the sum of the children's time limits.
int run_doctor(const DoctorRequest&);

}  // namespace mp::launch
