#include <algorithm>
#include <array>

#include "runtime/launch/doctor/probe.hpp"
#include "runtime/trace/identity.hpp"

namespace mp::launch::doctor {
namespace {

// The variables that a section reports.
// clang-format off: a table
constexpr std::array kVariables = {
    "LD_PRELOAD", "LD_AUDIT", "PYTHONPATH", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "MP_TRACE_OPTIONS",
    "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "NVTX_INJECTION32_PATH", "CUDA_VISIBLE_DEVICES",
    "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TORCH_COMPILE_DEBUG",
    "PYTORCH_JIT", "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_DEFAULT_FPMATH_MODE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY",
    "NCCL_PROFILER_PLUGIN", "CUBLAS_WORKSPACE_CONFIG"};
// clang-format on

}  // namespace

LauncherFacts probe_launcher(const Machine& machine) {
    LauncherFacts facts;
    // Records the variables that identity.hpp reads, so that there is no second list that could differ.
    facts.identity = trace::identity_of_process([&](const char* name) {
        const char* const value = machine.variable(name);
        if (!value || !*value) return value;
        const std::string seen = std::string(name) + "=" + value;  // some are read twice
        if (std::find(facts.matched.begin(), facts.matched.end(), seen) == facts.matched.end())
            facts.matched.push_back(seen);
        return value;
    });
    return facts;
}

EnvironmentFacts probe_environment(const Machine& machine) {
    EnvironmentFacts facts;
    for (const char* const name : kVariables)
        if (const char* const value = machine.variable(name)) facts.variables[name] = value;
    return facts;
}

}  // namespace mp::launch::doctor
