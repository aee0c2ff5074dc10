#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/doctor/report.hpp"

namespace mp::launch::doctor {

// A machine with the libraries, GPUs and files that a test wants. The functions of the libraries are plain
// functions, as dlsym gives them, and answer from here.
struct FakeCuda {
    bool driver = true, runtime = true, nccl = true;
    int driver_version = 13000, runtime_version = 13000, nccl_version = 22809;
    int init = 0;                        // what cuInit answers
    int every_other = 0;                 // what every call after cuInit answers
    std::vector<std::string> missing{};  // functions that the libraries lack
    std::vector<GpuFacts> gpus{};
};

inline FakeCuda& fake_cuda() {
    static FakeCuda fake;
    return fake;
}

inline void* fake_symbol(const char* name) {
    const std::string wanted = name;
    const auto& missing = fake_cuda().missing;
    if (std::find(missing.begin(), missing.end(), wanted) != missing.end()) return nullptr;
    const auto give = [](int* out, int value) {
        *out = fake_cuda().every_other ? -77 : value;
        return fake_cuda().every_other;
    };
    static const auto answer = give;
    using One = int (*)(int*);
    using Get = int (*)(int*, int);
    using Name = int (*)(char*, int, int);
    using Attribute = int (*)(int*, int, int);
    if (wanted == "cuInit") return reinterpret_cast<void*>(+[](unsigned) { return fake_cuda().init; });
    if (wanted == "cuDriverGetVersion")
        return reinterpret_cast<void*>(One(+[](int* v) { return answer(v, fake_cuda().driver_version); }));
    if (wanted == "cudaRuntimeGetVersion")
        return reinterpret_cast<void*>(One(+[](int* v) { return answer(v, fake_cuda().runtime_version); }));
    if (wanted == "ncclGetVersion")
        return reinterpret_cast<void*>(One(+[](int* v) { return answer(v, fake_cuda().nccl_version); }));
    if (wanted == "cuDeviceGetCount")
        return reinterpret_cast<void*>(
            One(+[](int* v) { return answer(v, static_cast<int>(fake_cuda().gpus.size())); }));
    if (wanted == "cuDeviceGet")
        return reinterpret_cast<void*>(Get(+[](int* v, int i) { return answer(v, i); }));
    if (wanted == "cuDeviceGetName")
        return reinterpret_cast<void*>(Name(+[](char* name_out, int size, int i) {
            const std::string& text = fake_cuda().gpus.at(static_cast<std::size_t>(i)).name;
            text.copy(name_out, static_cast<std::size_t>(size));
            return fake_cuda().every_other;
        }));
    if (wanted == "cuDeviceGetAttribute")
        return reinterpret_cast<void*>(Attribute(+[](int* v, int attribute, int i) {
            const GpuFacts& gpu = fake_cuda().gpus.at(static_cast<std::size_t>(i));
            return answer(v, attribute == 75 ? gpu.major : gpu.minor);
        }));
    return nullptr;
}

inline Machine fake_machine(FakeCuda cuda) {
    fake_cuda() = std::move(cuda);
    Machine machine;
    machine.open = [](const char* name, std::string& why) -> void* {
        const std::string text = name;
        const FakeCuda& fake = fake_cuda();
        const bool there = (text == "libcuda.so.1" && fake.driver) ||
                           (text == "libcudart.so.12" && fake.runtime) ||
                           (text == "libnccl.so.2" && fake.nccl);
        why = there ? "" : text + ": cannot open shared object file: No such file or directory";
        return there ? &fake_cuda() : nullptr;
    };
    machine.symbol = [](void*, const char* name) { return fake_symbol(name); };
    machine.variable = [](const char*) -> const char* { return nullptr; };
    machine.cpuid = [](std::uint32_t, std::uint32_t) { return std::array<std::uint32_t, 4>{}; };
    machine.xgetbv = [] { return std::uint64_t{0}; };
    machine.read_file = [](const std::string&) { return std::string(); };
    return machine;
}

// A torch 2.11 with CUDA, as its child would describe it.
inline TorchFacts cuda_torch(bool says_bf16) {
    TorchFacts torch;
    torch.found = true;
    torch.executable = "/opt/python";
    torch.version = "2.11.0+cu128";
    torch.cuda_built = "12.8";
    torch.nccl = true;
    torch.bf16_supported = says_bf16;
    torch.nccl_version = {2, 28, 9};
    return torch;
}

// The line of this key; an empty one, which no test expects, when there is none.
inline Line line_of(const Section& section, const std::string& key) {
    for (const Line& line : section.lines)
        if (line.key == key) return line;
    return {.key = "no line '" + key + "'"};
}

}  // namespace mp::launch::doctor
