#include <algorithm>
#include <utility>

#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "kernels/base/child.hpp"
#include "runtime/launch/doctor/json_values.hpp"
#include "runtime/launch/doctor/probe.hpp"

// No vendor header is used. The few functions that are called are declared here, as in cuda.h,
// cuda_runtime_api.h and nccl.h since CUDA 8 and NCCL 2.4.
namespace mp::launch::doctor {
namespace {

using CuInit = int (*)(unsigned flags);
using CuDriverGetVersion = int (*)(int* version);
using CuDeviceGetCount = int (*)(int* count);
using CuDeviceGet = int (*)(int* device, int ordinal);
using CuDeviceGetName = int (*)(char* name, int size, int device);
using CuDeviceGetAttribute = int (*)(int* value, int attribute, int device);
using CudaRuntimeGetVersion = int (*)(int* version);
using NcclGetVersion = int (*)(int* version);

constexpr int kCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kCapabilityMinor = 76;
constexpr int kMissingFunction = -1;
constexpr int kMaxGpus = 64;

// cuInit starts up every GPU of the machine, which takes seconds on a large one.
constexpr ChildLimits kLimits{.milliseconds = 30'000};

void* open_first(const Machine& machine, const std::vector<std::string>& names, LibraryFacts& facts) {
    for (const std::string& name : names) {
        std::string why;
        if (void* const library = machine.open(name.c_str(), why)) {
            facts = {.found = true, .path = name};
            return library;
        }
        // Any other reason is more useful than "No such file" for one of several paths.
        if (facts.why.empty() || why.find("No such file") == std::string::npos) facts.why = why;
    }
    return nullptr;
}

std::vector<std::string> candidates(const std::vector<std::string>& directories,
                                    const std::vector<std::string>& names) {
    std::vector<std::string> all;
    for (const std::string& directory : directories)
        for (const std::string& name : names) all.push_back(directory + "/" + name);
    all.insert(all.end(), names.begin(), names.end());
    return all;
}

template <typename Function>
Function find(const Machine& machine, void* library, const char* name) {
    return reinterpret_cast<Function>(machine.symbol(library, name));
}

template <typename Function>
void ask_version(const Machine& machine, void* library, const char* name, LibraryFacts& facts) {
    const auto get_version = find<Function>(machine, library, name);
    int version = 0;
    if (get_version && get_version(&version) == 0) facts.version = version;
}

std::vector<GpuFacts> ask_gpus(const Machine& machine, void* driver) {
    const auto count_of = find<CuDeviceGetCount>(machine, driver, "cuDeviceGetCount");
    const auto device_of = find<CuDeviceGet>(machine, driver, "cuDeviceGet");
    const auto name_of = find<CuDeviceGetName>(machine, driver, "cuDeviceGetName");
    const auto attribute_of = find<CuDeviceGetAttribute>(machine, driver, "cuDeviceGetAttribute");
    int count = 0;
    if (!count_of || !device_of || !attribute_of || count_of(&count) != 0) return {};
    std::vector<GpuFacts> gpus;
    for (int i = 0; i < std::min(count, kMaxGpus); ++i) {
        GpuFacts gpu;
        int device = 0;
        std::array<char, 256> name{};
        if (device_of(&device, i) != 0 || attribute_of(&gpu.major, kCapabilityMajor, device) != 0 ||
            attribute_of(&gpu.minor, kCapabilityMinor, device) != 0)
            gpu = {};
        if (name_of && name_of(name.data(), static_cast<int>(name.size()) - 1, device) == 0)
            gpu.name = name.data();
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

nlohmann::json message_of(const LibraryFacts& facts) {
    return {{"found", facts.found},
            {"path", facts.path},
            {"why", facts.why},
            {"version", facts.version},
            {"status", facts.status}};
}

LibraryFacts library_from(const nlohmann::json& json) {
    return {.found = flag_in(json, "found").value_or(false),
            .path = text_in(json, "path"),
            .why = text_in(json, "why"),
            .version = number_in(json, "version"),
            .status = number_in(json, "status")};
}

}  // namespace

CudaFacts ask_cuda(const Machine& machine, const std::vector<std::string>& directories) {
    CudaFacts facts;
    if (void* const driver = open_first(machine, {"libcuda.so.1"}, facts.driver)) {
        ask_version<CuDriverGetVersion>(machine, driver, "cuDriverGetVersion", facts.driver);
        const auto init = find<CuInit>(machine, driver, "cuInit");
        facts.driver.status = init ? init(0) : kMissingFunction;
        if (facts.driver.status == 0) facts.gpus = ask_gpus(machine, driver);
    }
    const std::vector<std::string> runtimes = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                               "libcudart.so.10.2", "libcudart.so"};
    if (void* const runtime = open_first(machine, candidates(directories, runtimes), facts.runtime))
        ask_version<CudaRuntimeGetVersion>(machine, runtime, "cudaRuntimeGetVersion", facts.runtime);
    if (void* const nccl =
            open_first(machine, candidates(directories, {"libnccl.so.2", "libnccl.so"}), facts.nccl))
        ask_version<NcclGetVersion>(machine, nccl, "ncclGetVersion", facts.nccl);
    return facts;
}

std::string to_message(const CudaFacts& facts) {
    nlohmann::json gpus = nlohmann::json::array();
    for (const GpuFacts& gpu : facts.gpus)
        gpus.push_back({{"name", gpu.name}, {"major", gpu.major}, {"minor", gpu.minor}});
    const nlohmann::json all{{"driver", message_of(facts.driver)},
                             {"runtime", message_of(facts.runtime)},
                             {"nccl", message_of(facts.nccl)},
                             {"gpus", std::move(gpus)}};
    return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

CudaFacts cuda_from_message(std::string_view message) {
    CudaFacts facts;
    const nlohmann::json json = nlohmann::json::parse(message, nullptr, false);
    if (!json.is_object()) {
        facts.fault = "the probe's answer is not readable";
        return facts;
    }
    facts.driver = library_from(member(json, "driver"));
    facts.runtime = library_from(member(json, "runtime"));
    facts.nccl = library_from(member(json, "nccl"));
    for (const nlohmann::json& gpu : member(json, "gpus"))
        facts.gpus.push_back({text_in(gpu, "name"), number_in(gpu, "major"), number_in(gpu, "minor")});
    return facts;
}

CudaFacts probe_cuda(const Machine& machine, const std::vector<std::string>& directories) {
    const Result<std::string> answer =
        run_forked([&] { return to_message(ask_cuda(machine, directories)); }, kLimits);
    if (answer) return cuda_from_message(*answer);
    CudaFacts facts;
    facts.fault = answer.error().message;
    return facts;
}

}  // namespace mp::launch::doctor
