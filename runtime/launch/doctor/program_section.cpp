#include "runtime/launch/doctor/sections.hpp"
#include "runtime/trace/display.hpp"

namespace mp::launch::doctor {
namespace {

Line library_line(std::string key, bool shared, bool is_static, std::string seen, std::string hint) {
    if (shared) return {.key = std::move(key), .verdict = Verdict::ok, .value = "shared: " + std::move(seen)};
    if (is_static)
        return {.key = std::move(key),
                .verdict = Verdict::warn,
                .value = "linked statically: its calls are not seen, its kernels by their names only",
                .hint = std::move(hint)};
    return {.key = std::move(key), .value = "not linked; what the program opens with dlopen is not known"};
}

Line place_line(const std::string& name, const std::string& owner) {
    if (owner.empty()) return {.key = name, .verdict = Verdict::ok, .value = "free"};
    return {.key = name,
            .verdict = Verdict::warn,
            .value = "taken by " + owner,
            .hint = "the other tool keeps its place; unset the variable to give it to mp-trace"};
}

Line runtime_line(const ProgramFacts& p) {
    const char* const kNothing = ": launches are seen at the driver";
    if (p.shared_runtime)
        return {.key = "CUDA runtime", .verdict = Verdict::ok, .value = std::string("shared") + kNothing};
    if (p.opens_driver)
        return {.key = "CUDA runtime",
                .verdict = Verdict::ok,
                .value = std::string("linked statically") + kNothing};
    return {.key = "CUDA runtime", .value = "not found in the program"};
}

Line nvtx_line(const ProgramFacts& p) {
    if (p.nvtx)
        return {.key = "NVTX",
                .verdict = Verdict::ok,
                .value =
                    "version 3 in the program: its ranges give steps and layers; its domains are known when "
                    "it runs"};
    if (p.nvtx2)
        return {.key = "NVTX",
                .value = "version 2 (libnvToolsExt): whether its ranges are seen was never tried",
                .hint = "compile with the headers nvtx3/ of CUDA 10 or newer, which need no library"};
    return {.key = "NVTX",
            .verdict = Verdict::warn,
            .value = "no ranges in the program: one step, no layers",
            .hint = "nvtxRangePushA(\"Train step 3\"), or mptrace_step() of mptrace.h"};
}

}  // namespace

Section recording_section(const RecordingFacts& r) {
    Section section{.name = "recording", .lines = {}};
    const auto add = [&section](Line line) { section.lines.push_back(std::move(line)); };
    if (!r.fault.empty()) {
        add({.key = "recording", .verdict = Verdict::note, .value = r.path + ": " + r.fault});
        return section;
    }
    for (const trace::ProcessRecord& p : r.processes) {
        const std::string who =
            p.rank.known() ? "rank " + std::to_string(p.rank.value) : "pid " + std::to_string(p.pid);
        add({.key = who,
             .verdict = Verdict::ok,
             .value = trace::shown(p.program) + ", " + trace::shown(p.framework)});
        if (!p.members.empty()) add({.key = "  ranks of NCCL", .value = trace::shown(p.members)});
        if (p.framework == trace::kRawFramework)
            add({.key = "  NVTX domains",
                 .value = p.nvtx_domains.empty() ? "the default one alone" : trace::shown(p.nvtx_domains)});
    }
    for (const std::string& text : r.missing)
        add({.key = "not seen", .verdict = Verdict::warn, .value = trace::shown(text)});
    return section;
}

Section program_section(const ProgramFacts& p) {
    Section section{.name = "program", .lines = {}};
    const auto add = [&section](Line line) { section.lines.push_back(std::move(line)); };
    if (!p.fault.empty()) {
        add({.key = "program",
             .verdict = Verdict::note,
             .value = p.path + ": " + p.fault,
             .hint = "for a script, name the program that it starts"});
        return section;
    }
    if (p.torch) {
        add({.key = "program",
             .verdict = Verdict::ok,
             .value = p.path + ": links libtorch, so the adapter observes it"});
        return section;
    }
    if (p.is_static) {
        add({.key = "program",
             .verdict = Verdict::no,
             .value = p.path + ": linked statically, so nothing can be loaded into it",
             .needed = true});
        return section;
    }
    add({.key = "program", .verdict = Verdict::ok, .value = p.path});
    add(runtime_line(p));
    add(library_line("cuBLAS", p.cublas || p.cublas_lt, p.static_cublas, "each product with its tensors",
                     "link with -lcublas -lcublasLt, not with the _static libraries"));
    Line nccl =
        library_line("NCCL", p.nccl, p.static_nccl, "each collective with its tensors", "link with -lnccl");
    if (p.static_nccl && !p.nccl)
        nccl.value =
            "linked statically: its collectives are known by its profiler interface, without their operator";
    if (!p.nccl_version.empty()) nccl.value += "; version " + p.nccl_version;
    add(std::move(nccl));
    add(nvtx_line(p));
    for (const auto& [name, owner] : p.places) add(place_line(name, owner));
    return section;
}

}  // namespace mp::launch::doctor
