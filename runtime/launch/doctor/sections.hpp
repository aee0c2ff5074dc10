#pragma once

#include "runtime/launch/doctor/facts.hpp"
#include "runtime/launch/doctor/report.hpp"

// Turns facts into lines, without side effects. Each limit is next to the line that uses it.
namespace mp::launch::doctor {

Section launcher_section(const LauncherFacts&);
Section environment_section(const EnvironmentFacts&, const ReachFacts&);
Section torch_section(const TorchFacts&, const AdapterFacts&);
Section tf32_section(const TorchFacts&, const EnvironmentFacts&, const CudaFacts&);
Section bf16_section(const TorchFacts&, const CudaFacts&);
Section cupti_section(const CuptiFacts&);
Section program_section(const ProgramFacts&);
Section source_section(const SourceFacts&);
Section recording_section(const RecordingFacts&);
Section cpu_section(const CpuFacts&, const TorchFacts&, const EnvironmentFacts&);

}  // namespace mp::launch::doctor
