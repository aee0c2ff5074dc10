#include "runtime/launch/doctor/doctor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/doctor/report.hpp"
#include "runtime/launch/doctor/sections.hpp"
#include "runtime/launch/doctor/self_test.hpp"
#include "runtime/launch/layout.hpp"

namespace mp::launch {
namespace {

using namespace doctor;

constexpr std::array<std::string_view, 7> kSections = {"launcher", "environment", "torch", "tf32",
                                                       "bf16",     "cupti",       "cpu"};

// Which probes a section needs: importing torch takes seconds, and so does starting eight GPUs.
struct Plan {
    std::string_view only;

    bool shows(std::string_view section) const { return only.empty() || only == section; }
    bool torch() const {
        return shows("torch") || shows("tf32") || shows("bf16") || shows("cupti") || shows("cpu");
    }
    bool cuda() const { return shows("tf32") || shows("bf16"); }
};

Result<Layout> layout_for(const DoctorRequest& request) {
    return request.prefix.empty() ? own_layout() : layout_of(request.prefix + "/bin/mp-trace");
}

std::vector<std::string> adapter_directories(const DoctorRequest& request, const Layout& layout) {
    std::vector<std::string> directories = request.adapters;
    directories.push_back(layout.adapters);
    const std::string cache =
        adapter_cache([](const char* name) -> const char* { return std::getenv(name); });
    if (!cache.empty()) directories.push_back(cache);
    return directories;
}

// A CUDA program, its sources, or both.
DoctorReport examine_program(const DoctorRequest& request, const Layout& layout) {
    DoctorReport report;
    bool has_sources = !request.sources.empty();
    if (!request.program.empty()) {
        const std::string probe = parent_of(layout.preload) + "/libmptrace_cupti_probe.so";
        CuptiFacts cupti;
        if (access(probe.c_str(), R_OK) == 0) cupti.probe = probe, cupti.plain = probe_cupti(probe, {});
        const ProgramFacts program = probe_program(request.program);
        has_sources = has_sources || program.fault.empty();
        report.sections = {program_section(program), cupti_section(cupti)};
    }
    if (has_sources)
        report.sections.push_back(source_section(probe_sources({.program = request.program,
                                                                .folder = request.sources,
                                                                .flags = request.flags,
                                                                .lint = layout.lint})));
    return report;
}

DoctorReport examine(const DoctorRequest& request, const Layout& layout, const Plan& plan) {
    std::error_code error;
    if (std::filesystem::is_directory(request.program, error))
        return {.sections = {recording_section(probe_recording(request.program))}};
    if (!request.program.empty() || !request.sources.empty()) return examine_program(request, layout);
    const Machine machine = this_machine();
    const std::string python = request.python.empty() ? "python3" : request.python;
    const std::string probe = parent_of(layout.preload) + "/libmptrace_cupti_probe.so";
    Facts facts;
    facts.environment = probe_environment(machine);
    if (plan.shows("launcher")) facts.launcher = probe_launcher(machine);
    if (plan.shows("environment")) facts.reach = probe_reach(python, layout.preload, layout.shim);
    if (plan.shows("cupti") && access(probe.c_str(), R_OK) == 0) facts.cupti.probe = probe;
    if (plan.torch()) facts.torch = probe_torch(python, facts.cupti.probe);
    if (plan.shows("torch"))
        facts.adapter = probe_adapter(facts.torch, adapter_directories(request, layout), layout.sources);
    if (plan.cuda()) facts.cuda = probe_cuda(machine, facts.torch.library_dirs);
    if (!facts.cupti.probe.empty()) {
        facts.cupti.plain = probe_cupti(probe, facts.torch.library_dirs);
        facts.cupti.with_torch = cupti_from_bytes(facts.torch.cupti);
    }
    if (plan.shows("cpu")) facts.cpu = probe_cpu(machine);

    DoctorReport report;
    const auto add = [&](Section section) {
        if (plan.shows(section.name)) report.sections.push_back(std::move(section));
    };
    add(launcher_section(facts.launcher));
    add(environment_section(facts.environment, facts.reach));
    add(torch_section(facts.torch, facts.adapter));
    add(tf32_section(facts.torch, facts.environment, facts.cuda));
    add(bf16_section(facts.torch, facts.cuda));
    add(cupti_section(facts.cupti));
    add(cpu_section(facts.cpu, facts.torch, facts.environment));
    if (request.self_test) {
        const std::string tool = request.prefix.empty() ? "/proc/self/exe" : request.prefix + "/bin/mp-trace";
        report.sections.push_back(self_test_section(probe_self_test(tool, python, request.adapters)));
    }
    return report;
}

}  // namespace

std::span<const std::string_view> doctor_sections() { return kSections; }

int run_doctor(const DoctorRequest& request) {
    if (!request.only.empty() &&
        std::find(kSections.begin(), kSections.end(), request.only) == kSections.end()) {
        std::string known;
        for (const std::string_view name : kSections) known.append(known.empty() ? "" : ", ").append(name);
        std::fprintf(stderr, "mp-trace: doctor has no section '%s'; it has %s\n", request.only.c_str(),
                     known.c_str());
        return 2;
    }
    const Result<Layout> layout = layout_for(request);
    if (!layout) {
        std::fprintf(stderr, "mp-trace: %s\n", layout.error().message.c_str());
        return 1;
    }
    const DoctorReport report = examine(request, *layout, Plan{request.only});
    const std::string text = request.json ? to_json(report) : to_text(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0) {
        std::fprintf(stderr, "mp-trace: the report cannot be written: %s\n", std::strerror(errno));
        return 1;
    }
    return traceable(report) ? 0 : 1;
}

}  // namespace mp::launch
