#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "runtime/launch/doctor/sections.hpp"
#include "runtime/trace/cupti_probe.hpp"

namespace mp::launch::doctor {
namespace {

constexpr int kFirstCuda = 11;     // first with __nv_bfloat16 in its libraries
constexpr int kFirstNccl = 21000;  // 2.10: first with ncclBfloat16
constexpr int kNativeMajor = 8;    // compute capability 8.0: first with bf16 and TF32 arithmetic

// 13000 is 13.0, 11080 is 11.8.
std::string cuda_version(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// NCCL encodes 2.8.4 as 2804, and since 2.9 2.10.3 as 21003.
int nccl_number(int version) { return version >= 10000 ? version : version / 1000 * 10000 + version % 1000; }

std::string nccl_version(int version) {
    const int v = nccl_number(version);
    return std::to_string(v / 10000) + "." + std::to_string(v % 10000 / 100) + "." + std::to_string(v % 100);
}

int leading_number(std::string_view text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string python_bool(bool value) { return value ? "True" : "False"; }

bool native_bf16(const GpuFacts& gpu) { return gpu.major >= kNativeMajor; }
std::string capability(const GpuFacts& gpu) {
    return std::to_string(gpu.major) + "." + std::to_string(gpu.minor);
}

// Results of cuInit on machines with missing parts; cuda.h has the whole list.
std::string_view driver_words(int status) {
    switch (status) {
        case -1:
            return "it lacks a function that every driver has";
        case 34:
            return "it is the toolkit's stub, not a driver";
        case 100:
            return "there is no GPU";
        case 802:
            return "the system is not ready: is the fabric manager running?";
        case 803:
            return "the library and the kernel module are of different versions";
        case 804:
            return "the compatibility package does not fit this GPU";
        case 999:
            return "unknown error: is the kernel module loaded?";
        default:
            return "it refused to start";
    }
}

Line driver_line(const CudaFacts& cuda) {
    Line line{.key = "CUDA driver >= 11.0"};
    const LibraryFacts& driver = cuda.driver;
    if (!driver.found) {
        line.verdict = Verdict::no;
        line.value = "not found: " + driver.why;
        line.hint =
            "install the NVIDIA driver, 450.80 or newer; in a container start it with the GPUs passed "
            "through";
        return line;
    }
    const bool enough = driver.version >= kFirstCuda * 1000;
    line.verdict = enough ? Verdict::ok : Verdict::no;
    line.value = driver.version ? cuda_version(driver.version) : "does not tell its version";
    if (!enough) line.hint = "update the NVIDIA driver to 450.80 or newer";
    if (driver.status != 0) {
        line.verdict = Verdict::no;
        line.value += ", but cuInit answers " + std::to_string(driver.status) + ": " +
                      std::string(driver_words(driver.status));
        if (line.hint.empty()) line.hint = "nvidia-smi says more about a driver that does not start";
    }
    return line;
}

Line runtime_line(const CudaFacts& cuda) {
    Line line{.key = "CUDA runtime >= 11.0"};
    const LibraryFacts& runtime = cuda.runtime;
    if (!runtime.found) {
        line.verdict = Verdict::no;
        line.value = "not found: " + runtime.why;
        line.hint = "a CUDA build of torch brings it; so does the CUDA Toolkit";
        return line;
    }
    line.value = runtime.version ? cuda_version(runtime.version) + " (" + runtime.path + ")"
                                 : "does not tell its version (" + runtime.path + ")";
    line.verdict = runtime.version >= kFirstCuda * 1000 ? Verdict::ok : Verdict::no;
    if (line.verdict == Verdict::no) line.hint = "install a torch that is built for CUDA 11 or newer";
    // Since CUDA 11, an older driver supports a newer runtime of the same major version.
    if (cuda.driver.version && runtime.version / 1000 > cuda.driver.version / 1000) {
        line.verdict = Verdict::no;
        line.value += ", newer than the driver, which serves up to " + cuda_version(cuda.driver.version);
        line.hint = "update the NVIDIA driver, or install a torch built for an older CUDA";
    }
    return line;
}

Line built_line(const TorchFacts& torch) {
    Line line{.key = "torch.version.cuda >= 11.0"};
    if (!torch.found || torch.version.empty()) {
        line.verdict = Verdict::no;
        line.value = "no torch to ask";
        return line;
    }
    if (torch.cuda_built.empty()) {
        line.verdict = Verdict::no;
        line.value = torch.hip_built.empty() ? "None: torch is built without CUDA"
                                             : "None: torch is built for ROCm " + torch.hip_built;
        line.hint = torch.hip_built.empty() ? "install a torch with CUDA"
                                            : "the CUDA conditions do not say anything about an AMD GPU";
        return line;
    }
    line.value = torch.cuda_built;
    line.verdict = leading_number(torch.cuda_built) >= kFirstCuda ? Verdict::ok : Verdict::no;
    if (line.verdict == Verdict::no) line.hint = "install a torch that is built for CUDA 11 or newer";
    return line;
}

Line nccl_available_line(const TorchFacts& torch) {
    Line line{.key = "dist.is_nccl_available()"};
    line.verdict = torch.nccl.value_or(false) ? Verdict::ok : Verdict::no;
    line.value = torch.nccl ? python_bool(*torch.nccl) : "no torch to ask";
    if (line.verdict == Verdict::no && torch.nccl) line.hint = "install a torch that is built with NCCL";
    return line;
}

// The version of the NCCL that torch would use: torch's own value, else the library's.
int nccl_in_use(const TorchFacts& torch, const CudaFacts& cuda) {
    if (torch.nccl_version.size() >= 2) {
        const auto part = [&](std::size_t i) {
            return i < torch.nccl_version.size() ? std::clamp(torch.nccl_version[i], 0, 99) : 0;
        };
        return part(0) * 10000 + part(1) * 100 + part(2);
    }
    return nccl_number(cuda.nccl.version);
}

Line nccl_line(const TorchFacts& torch, const CudaFacts& cuda) {
    Line line{.key = "NCCL >= 2.10"};
    const int version = nccl_in_use(torch, cuda);
    line.verdict = version >= kFirstNccl ? Verdict::ok : Verdict::no;
    if (version) {
        line.value = nccl_version(version);
        line.value +=
            torch.nccl_version.empty() ? " (" + cuda.nccl.path + ")" : " (torch.cuda.nccl.version())";
        if (line.verdict == Verdict::no) line.hint = "bf16 collectives need NCCL 2.10: install a newer torch";
    } else if (cuda.nccl.found) {
        line.value = "does not tell its version (" + cuda.nccl.path + ")";
        line.hint = "install libnccl2, or a CUDA build of torch";
    } else {
        line.value = "not found: " + cuda.nccl.why;
        line.hint = "a CUDA build of torch brings it; else install libnccl2";
    }
    const int library = nccl_number(cuda.nccl.version);
    if (version && library && library != version) {
        line.value += ", while " + cuda.nccl.path + " is " + nccl_version(library);
        if (line.verdict == Verdict::ok) line.verdict = library >= kFirstNccl ? Verdict::note : Verdict::warn;
        if (line.verdict == Verdict::warn)
            line.hint = "a program that loads the other one has no bf16 collectives";
    }
    return line;
}

void add_gpu_lines(const CudaFacts& cuda, std::vector<Line>& lines) {
    if (cuda.gpus.empty()) {
        lines.push_back({.key = "GPU, capability >= 8.0",
                         .verdict = Verdict::no,
                         .value = "no GPU found",
                         .hint = cuda.driver.found
                                     ? "is CUDA_VISIBLE_DEVICES empty, or the GPU not passed through?"
                                     : "nothing can be asked without a driver"});
        return;
    }
    for (std::size_t i = 0; i < cuda.gpus.size(); ++i) {
        const GpuFacts& gpu = cuda.gpus[i];
        Line line{.key = "GPU " + std::to_string(i) + ", capability >= 8.0"};
        const std::string who = gpu.name.empty() ? "unnamed" : gpu.name;
        if (gpu.major == 0) {
            line.verdict = Verdict::no;
            line.value = who + " does not tell its capability";
        } else if (native_bf16(gpu)) {
            line.verdict = Verdict::ok;
            line.value = who + ", " + capability(gpu) + ": native bf16";
        } else {
            line.verdict = Verdict::no;
            line.value = who + ", " + capability(gpu) + ": bf16 is emulated, slower than fp32";
            line.hint =
                gpu.major >= 7 ? "use fp16 with a GradScaler: its tensor cores have fp16" : "use fp32 here";
        }
        lines.push_back(std::move(line));
    }
}

bool any_native(const CudaFacts& cuda) {
    return std::any_of(cuda.gpus.begin(), cuda.gpus.end(), native_bf16);
}

// torch tests whether a bf16 tensor can be created. Every GPU since Maxwell can do that by emulation.
Line torch_says_line(const TorchFacts& torch, const CudaFacts& cuda) {
    Line line{.key = "torch.cuda.is_bf16_supported()"};
    if (!torch.bf16_supported) {
        line.value = "no answer: " + std::string(torch.found ? "this torch has no CUDA" : "no torch to ask");
        return line;
    }
    line.value = python_bool(*torch.bf16_supported);
    if (torch.bf16_supported_native)
        line.value += ", without emulation " + python_bool(*torch.bf16_supported_native);
    if (*torch.bf16_supported && !cuda.gpus.empty() && !native_bf16(cuda.gpus.front())) {
        line.verdict = Verdict::warn;
        line.value += ": it counts emulation";
        line.hint = "ask torch.cuda.get_device_capability() >= (8, 0) instead";
    } else {
        line.verdict = *torch.bf16_supported ? Verdict::ok : Verdict::note;
    }
    return line;
}

Line answer_line(const CudaFacts& cuda, const std::vector<Line>& conditions) {
    Line line{.key = "bf16 training on GPUs here",
              .verdict = Verdict::ok,
              .value = "yes, native, collectives included"};
    std::string failing;
    bool only_gpus = !cuda.gpus.empty();
    for (const Line& condition : conditions) {
        if (condition.verdict != Verdict::no) continue;
        failing += (failing.empty() ? "" : "; ") + condition.key;
        only_gpus = only_gpus && condition.key.starts_with("GPU ");
    }
    if (failing.empty()) return line;
    line.verdict = only_gpus ? Verdict::warn : Verdict::no;
    line.value = !only_gpus         ? "no"
                 : any_native(cuda) ? "native on some GPUs, emulated on others"
                                    : "runs, but emulated: slower than fp32";
    line.value += "; fails: " + failing;
    return line;
}

// ---- TF32 ------------------------------------------------------------------------------------------

struct Switch {
    std::string_view name;
    std::string_view what;  // runs in the lower format when the switch is on
    bool on_cpu;
};

constexpr std::array kSwitches = {
    Switch{"cuda.matmul.allow_tf32", "fp32 matrix products", false},
    Switch{"cudnn.allow_tf32", "fp32 convolutions and RNNs (on by default)", false},
    Switch{"float32_matmul_precision", "fp32 matrix products", false},
    Switch{"fp32_precision", "fp32 operations", false},
    Switch{"cuda.matmul.fp32_precision", "fp32 matrix products", false},
    Switch{"cudnn.fp32_precision", "fp32 convolutions and RNNs", false},
    Switch{"cudnn.conv.fp32_precision", "fp32 convolutions", false},
    Switch{"cudnn.rnn.fp32_precision", "fp32 RNNs", false},
    Switch{"mkldnn.matmul.fp32_precision", "fp32 matrix products on the CPU", true},
    Switch{"mkldnn.conv.fp32_precision", "fp32 convolutions on the CPU", true},
    Switch{"cuda.matmul.allow_fp16_accumulation", "fp16 matrix products, sums included,", false},
};

// Splitting a long sum may add its parts in the low format. That is a property of the run, not of fp32.
constexpr std::array<std::string_view, 2> kReductions = {
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cuda.matmul.allow_fp16_reduced_precision_reduction"};

bool off(std::string_view value) {
    return value == "False" || value == "none" || value == "ieee" || value == "highest";
}

Line override_line(const EnvironmentFacts& environment, const char* name, bool applies) {
    Line line{.key = name};
    const auto found = environment.variables.find(name);
    if (found == environment.variables.end()) {
        line.verdict = Verdict::ok;
        line.value = "not set";
        return line;
    }
    line.value = found->second;
    const bool zero = found->second == "0" || found->second.empty();
    line.verdict = zero ? Verdict::ok : applies ? Verdict::warn : Verdict::note;
    line.value += zero ? ": keeps TF32 off" : ": turns TF32 on, whatever the program says";
    if (line.verdict == Verdict::warn)
        line.hint = "unset it: the fp32 twin would compute with 10 bits of fraction";
    return line;
}

bool forced_off(const EnvironmentFacts& environment) {
    const auto found = environment.variables.find("NVIDIA_TF32_OVERRIDE");
    return found != environment.variables.end() && found->second == "0";
}

Line switch_line(const Switch& known, const std::string& value, bool applies) {
    Line line{.key = std::string(known.name), .verdict = Verdict::ok, .value = value};
    if (off(value)) return line;
    line.verdict = applies || known.on_cpu ? Verdict::warn : Verdict::note;
    line.value += ": " + std::string(known.what) + " run below fp32";
    if (line.verdict == Verdict::warn)
        line.hint = known.on_cpu ? "set torch.backends.mkldnn's fp32_precision to 'ieee' for a true fp32 twin"
                                 : "set NVIDIA_TF32_OVERRIDE=0 for a true fp32 twin on the GPU";
    if (known.name == "cuda.matmul.allow_fp16_accumulation" && line.verdict == Verdict::warn)
        line.hint = "fp16 sums overflow at 65504 and lose small terms: leave it off for training";
    return line;
}

// ---- CUPTI -----------------------------------------------------------------------------------------

std::string_view cupti_hint(int code) {
    switch (code) {
        case 11:
        case 14:
            return "libcupti and the driver do not fit each other: install the CUPTI of the driver's CUDA";
        case 15:
        case 999:
            return "CUPTI needs an NVIDIA driver and a GPU; without them this is its answer";
        case 33:
            return "the virtual GPU does not let itself be profiled; ask its administrator";
        case 35:
        case 40:
            return "an administrator allows it with the module option NVreg_RestrictProfilingToAdminUsers=0";
        case 36:
        case 38:
            return "another profiling interface is in use in this process";
        default:
            return "programs are traced without CUPTI; launches and times of raw CUDA programs are missing";
    }
}

Line place_line(std::string key, const CuptiAnswer& answer) {
    Line line{.key = std::move(key)};
    if (!answer.asked) {
        line.verdict = Verdict::warn;
        line.value = "could not be asked: " + (answer.why.empty() ? std::string("no answer") : answer.why);
        return line;
    }
    switch (answer.state) {
        case mp_cupti_free:
            line.verdict = Verdict::ok;
            line.value = "free";
            break;
        case mp_cupti_held:
            line.verdict = Verdict::warn;
            line.value = answer.holder.empty() ? "held by another tool, which this CUPTI does not name"
                                               : "held by '" + answer.holder + "'";
            line.hint =
                "one subscriber per process: stop the other profiler or debugger, or trace without CUPTI";
            break;
        case mp_cupti_refused:
            line.verdict = Verdict::no;
            line.value = answer.call + " answers " + std::to_string(answer.code) +
                         (answer.message.empty() ? "" : " (" + answer.message + ")");
            line.hint = cupti_hint(answer.code);
            break;
        case mp_cupti_incomplete:
            line.verdict = Verdict::no;
            line.value = answer.library + " has no " + answer.message;
            line.hint = "install a complete libcupti (cuda-cupti)";
            break;
        default:
            line.verdict = Verdict::no;
            line.value = "no libcupti: " + answer.message;
            line.hint = "install cuda-cupti, or nvidia-cuda-cupti with pip; only raw CUDA programs need it";
    }
    return line;
}

}  // namespace

Section bf16_section(const TorchFacts& torch, const CudaFacts& cuda) {
    Section section{.name = "bf16"};
    if (!cuda.fault.empty()) {
        section.lines.push_back({.key = "CUDA libraries",
                                 .verdict = Verdict::no,
                                 .value = "cannot be asked: " + cuda.fault,
                                 .hint = "nvidia-smi says more about a driver that does not answer"});
        return section;
    }
    section.lines = {driver_line(cuda), runtime_line(cuda), built_line(torch)};
    add_gpu_lines(cuda, section.lines);
    section.lines.push_back(nccl_available_line(torch));
    section.lines.push_back(nccl_line(torch, cuda));
    const Line answer = answer_line(cuda, section.lines);
    section.lines.push_back(torch_says_line(torch, cuda));
    section.lines.push_back(answer);
    return section;
}

Section tf32_section(const TorchFacts& torch, const EnvironmentFacts& environment, const CudaFacts& cuda) {
    Section section{.name = "tf32"};
    const bool gpu = any_native(cuda);  // TF32 and bf16 came with the same compute capability
    section.lines.push_back(
        {.key = "GPU with TF32 (capability >= 8.0)",
         .value = gpu ? "yes: the switches below decide what fp32 means on it"
                      : "none here: the switches for GPUs have no effect on this machine"});
    section.lines.push_back(override_line(environment, "NVIDIA_TF32_OVERRIDE", gpu));
    section.lines.push_back(override_line(environment, "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", gpu));
    for (const Switch& known : kSwitches) {
        const auto value = torch.switches.find(std::string(known.name));
        if (value == torch.switches.end()) continue;
        section.lines.push_back(switch_line(known, value->second, gpu && !forced_off(environment)));
    }
    for (const std::string_view name : kReductions) {
        const auto value = torch.switches.find(std::string(name));
        if (value == torch.switches.end()) continue;
        const bool split = value->second == "True";
        section.lines.push_back(
            {.key = std::string(name.substr(name.rfind('.') + 1)),
             .value = value->second +
                      (split ? ": long sums may be added up in the low format" : ": sums stay in fp32")});
    }
    if (torch.switches.empty())
        section.lines.push_back({.key = "torch's switches", .value = "no torch to ask"});
    return section;
}

Section cupti_section(const CuptiFacts& cupti) {
    Section section{.name = "cupti"};
    if (cupti.probe.empty()) {
        section.lines.push_back({.key = "CUPTI",
                                 .verdict = Verdict::note,
                                 .value = "not asked: the probe is not part of this build",
                                 .hint = "build where the CUDA Toolkit has cupti.h (cuda-cupti-dev)"});
        return section;
    }
    const CuptiAnswer& seen = cupti.plain.library.empty() ? cupti.with_torch : cupti.plain;
    if (!seen.library.empty())
        section.lines.push_back(
            {.key = "CUPTI",
             .verdict = Verdict::ok,
             .value = seen.library + (seen.version ? ", API " + std::to_string(seen.version) : "")});
    section.lines.push_back(place_line("subscriber's place", cupti.plain));
    if (cupti.with_torch.asked)
        section.lines.push_back(place_line("the same after import torch", cupti.with_torch));
    section.lines.push_back(
        {.key = "needed for",
         .verdict = Verdict::note,
         .value = "launches and times of raw CUDA programs; torch programs are traced without it"});
    return section;
}

}  // namespace mp::launch::doctor
