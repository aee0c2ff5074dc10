#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch/doctor/facts.hpp"

// The probes. Each fills its part of the facts and never fails; a missing answer is a fact too.
namespace mp::launch::doctor {

// Access to the machine. Tests replace it by a V100, an old driver, or a processor without AVX-512.
struct Machine {
    std::function<void*(const char* name, std::string& why)> open;  // dlopen
    std::function<void*(void* library, const char* name)> symbol;   // dlsym
    std::function<const char*(const char* name)> variable;          // getenv
    std::function<std::array<std::uint32_t, 4>(std::uint32_t leaf, std::uint32_t subleaf)>
        cpuid;                                                      // eax ebx ecx edx
    std::function<std::uint64_t()> xgetbv;                          // XCR0
    std::function<std::string(const std::string& path)> read_file;  // empty: cannot be read
    std::string architecture;                                       // uname -m
    std::uint64_t hwcap = 0, hwcap2 = 0;                            // of getauxval, on Arm
    int processors = 0;
};
Machine this_machine();

// Opens libcuda, libcudart (first in `directories`) and libnccl in this process. Call it in a forked child.
CudaFacts ask_cuda(const Machine&, const std::vector<std::string>& directories);
// The same in a fork of this process: a library that crashes or hangs becomes a `fault`.
CudaFacts probe_cuda(const Machine&, const std::vector<std::string>& directories);
std::string to_message(const CudaFacts&);
CudaFacts cuda_from_message(std::string_view);

// Importing torch from a cold network file system takes tens of seconds.
inline constexpr int kImportMilliseconds = 120'000;
// Starts the interpreter and imports torch in it. `cupti_probe` may be empty.
TorchFacts probe_torch(const std::string& python, const std::string& cupti_probe,
                       int milliseconds = kImportMilliseconds);
// Parses the child's stdout. Untrusted text can only lead to missing values.
TorchFacts torch_from_output(std::string_view out);

ReachFacts probe_reach(const std::string& python, const std::string& preload, const std::string& shim);

AdapterFacts probe_adapter(const TorchFacts&, const std::vector<std::string>& directories,
                           const std::string& sources);

CuptiAnswer probe_cupti(const std::string& library, const std::vector<std::string>& directories);
CuptiAnswer cupti_from_bytes(std::string_view bytes);  // of an MpCuptiProbe

ProgramFacts probe_program(const std::string& path);
// The sources of `program`, or of what is in `folder`; one of them may be empty.
struct SourceRequest {
    std::string program{}, folder{};
    std::vector<std::string> flags{};  // of the program's build; empty: those of a compile database
    std::string lint{};                // where mp-lint is installed
    int milliseconds = 120'000;        // mp-lint takes about 8 s for a unit that includes CUDA's headers
};
// Finds them by the names of its units and runs mp-lint on them.
SourceFacts probe_sources(const SourceRequest&);

RecordingFacts probe_recording(const std::string& directory);

CpuFacts probe_cpu(const Machine&);

LauncherFacts probe_launcher(const Machine&);
EnvironmentFacts probe_environment(const Machine&);

}  // namespace mp::launch::doctor
