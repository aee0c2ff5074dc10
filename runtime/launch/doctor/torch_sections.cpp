#include <array>
#include <charconv>
#include <string_view>

#include "runtime/launch/doctor/sections.hpp"
#include "runtime/launch/words.hpp"

namespace mp::launch::doctor {
namespace {

// ---- The launcher ----------------------------------------------------------------------------------

std::string number_or_unknown(std::int32_t value) { return value < 0 ? "unknown" : std::to_string(value); }

// ---- The environment -------------------------------------------------------------------------------

Line preload_line(const ReachFacts& reach) {
    Line line{.key = "preload library", .verdict = Verdict::no, .needed = true};
    if (!reach.preload_there) {
        line.value = "not found: " + reach.preload;
        line.hint = "build or install the whole of mp-trace: its libraries are beside it, in ../lib/mp-trace";
    } else if (!reach.fault.empty()) {
        line.value = "with it the interpreter " + reach.fault;
        line.hint = "does the interpreter start at all? See --python";
    } else if (!reach.preload_mapped) {
        line.value = "the interpreter starts without it";
        line.hint = "an interpreter that is static, setuid or cleans its environment cannot be traced";
    } else {
        line.verdict = Verdict::ok;
        line.value = "reaches the interpreter (" + reach.preload + ")";
    }
    return line;
}

Line shim_line(const ReachFacts& reach) {
    Line line{.key = "Python shim (layer names)"};
    if (!reach.shim_there) {
        line.verdict = Verdict::warn;
        line.value = "not found: " + reach.shim;
        line.hint = "build or install the whole of mp-trace; without it parameters have no names";
    } else if (!reach.asked || !reach.fault.empty()) {
        line.value = "not asked";
    } else if (reach.shim_ran) {
        line.verdict = Verdict::ok;
        line.value = "is imported";
        if (!reach.sitecustomize.empty()) line.value += ", and so is " + reach.sitecustomize;
    } else {
        line.verdict = Verdict::warn;
        line.value = reach.sitecustomize.empty() ? "is not imported"
                                                 : "is not imported; " + reach.sitecustomize + " comes first";
        line.hint =
            "does the interpreter ignore PYTHONPATH (-E, -I, -S)? Without the shim parameters have no names";
    }
    return line;
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

Line preloaded_line(const std::string& value) {
    Line line{.key = "LD_PRELOAD", .verdict = Verdict::ok, .value = value + ": kept, behind ours"};
    if (value.empty()) {
        line.value = "empty";
    } else if (contains(value, "libmptrace_preload")) {
        line.verdict = Verdict::note;
        line.value = value + ": this is a traced run already";
    } else if (contains(value, "libasan") || contains(value, "libtsan") || contains(value, "libclang_rt")) {
        line.verdict = Verdict::warn;
        line.value = value;
        line.hint = "a sanitizer's runtime must come first and refuses to start behind another library";
    } else if (contains(value, "libToolsInjection") || contains(value, "libsanitizer") ||
               contains(value, "nsys")) {
        line.verdict = Verdict::warn;
        line.value = value + ": a profiler's injection";
        line.hint = "it keeps its place; expect CUPTI and NVTX to be taken";
    }
    return line;
}

Line injection_line(const std::string& name, const std::string& value) {
    return {.key = name,
            .verdict = Verdict::warn,
            .value = "taken by " + value,
            .hint =
                "there is one such place per process: the other tool keeps it, and raw CUDA programs are "
                "traced without it; unset it to give it to mp-trace"};
}

bool truthy(const std::string& value) {
    return !value.empty() && value != "0" && value != "false" && value != "False";
}

// Variables that are set and have an effect; unset variables have no line.
void add_variable_lines(const std::map<std::string, std::string>& variables, std::vector<Line>& lines) {
    const auto each = [&](const char* name, auto make) {
        const auto found = variables.find(name);
        if (found != variables.end()) lines.push_back(make(found->second));
    };
    const auto when_on = [&](const char* name, Verdict verdict, const char* meaning) {
        each(name, [&](const std::string& value) {
            return truthy(value) ? Line{.key = name, .verdict = verdict, .value = value + ": " + meaning}
                                 : Line{.key = name, .value = value.empty() ? "empty" : value};
        });
    };
    each("MP_TRACE_OPTIONS", [](const std::string& value) {
        return Line{.key = "MP_TRACE_OPTIONS",
                    .verdict = Verdict::warn,
                    .value = value + ": this shell runs inside mp-trace",
                    .hint = "what is said here holds for the run around it"};
    });
    each("LD_PRELOAD", preloaded_line);
    each("LD_AUDIT", [](const std::string& value) {
        return Line{.key = "LD_AUDIT",
                    .verdict = Verdict::warn,
                    .value = value,
                    .hint = "auditing libraries see and may redirect what the preload library does"};
    });
    each("PYTHONPATH", [](const std::string& value) {
        return Line{.key = "PYTHONPATH",
                    .verdict = Verdict::ok,
                    .value = value + ": kept, behind ours; a sitecustomize in it still runs"};
    });
    for (const char* const name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"})
        each(name, [&](const std::string& value) {
            return value.empty() ? Line{.key = name, .value = "empty"} : injection_line(name, value);
        });
    for (const char* const name : {"TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"})
        when_on(name, Verdict::ok, "torch.compile runs eagerly, so that its regions are observed");
    each("PYTORCH_JIT", [](const std::string& value) {
        return Line{
            .key = "PYTORCH_JIT",
            .value = value + (truthy(value) ? "" : ": TorchScript runs as Python, so that it is observed")};
    });
    each("CUDA_VISIBLE_DEVICES", [](const std::string& value) {
        return Line{.key = "CUDA_VISIBLE_DEVICES",
                    .value = value.empty() ? "empty: no GPU is visible" : value};
    });
}

// ---- torch -----------------------------------------------------------------------------------------

bool add_python_lines(const TorchFacts& torch, std::vector<Line>& lines) {
    Line python{.key = "Python", .verdict = Verdict::ok, .needed = true};
    if (torch.executable.empty()) {
        python.verdict = Verdict::no;
        python.value =
            torch.python + " " + torch.fault + (torch.fault_text.empty() ? "" : ": " + torch.fault_text);
        python.hint = "name the interpreter of your program with --python EXE";
        lines.push_back(std::move(python));
        return false;
    }
    python.value = torch.python_version + " (" + torch.executable + ")";
    lines.push_back(std::move(python));
    Line found{.key = "torch", .verdict = Verdict::no, .needed = true};
    if (!torch.found) {
        found.value = "not found by this interpreter";
        found.hint =
            "install torch for it, or name another interpreter with --python EXE; a C++ program needs none, "
            "only mp-trace build-adapter --torch DIR";
    } else if (!torch.fault.empty()) {
        found.value = "cannot be imported: " + torch.fault;
        found.hint = "the program itself would fail here as well";
    } else {
        found.verdict = Verdict::ok;
        found.value = torch.version + " (" + torch.file + ")";
    }
    const bool good = found.verdict == Verdict::ok;
    lines.push_back(std::move(found));
    return good;
}

// Prototypes of the adapter ran on 1.13 to 2.15.
Line version_line(const TorchFacts& torch) {
    Line line{.key = "version", .verdict = Verdict::ok, .value = "1.13 or newer"};
    int major = 0, minor = 0;
    const char* const end = torch.version.data() + torch.version.size();
    const auto [rest, error] = std::from_chars(torch.version.data(), end, major);
    if (error == std::errc() && rest < end && *rest == '.') std::from_chars(rest + 1, end, minor);
    if (major < 1 || (major == 1 && minor < 13)) {
        line.verdict = Verdict::warn;
        line.value = "older than 1.13, which is not tested";
        line.hint = "install torch 1.13 or newer";
    }
    return line;
}

Line build_line(const TorchFacts& torch) {
    Line line{.key = "build"};
    line.value = !torch.cuda_built.empty()  ? "CUDA " + torch.cuda_built
                 : !torch.hip_built.empty() ? "ROCm " + torch.hip_built
                                            : "CPU only";
    if (!torch.cudnn.empty()) line.value += ", cuDNN " + torch.cudnn;
    if (torch.cxx11_abi)
        line.value += *torch.cxx11_abi ? ", CXX11 ABI" : ", old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0)";
    if (torch.cuda_available)
        line.value += *torch.cuda_available ? ", a GPU is available" : ", no GPU available";
    return line;
}

Line adapter_line(const TorchFacts& torch, const AdapterFacts& adapter) {
    Line line{.key = "adapter", .verdict = Verdict::no, .needed = true};
    const std::string command = "mp-trace build-adapter --python " + shell_word(torch.python);
    if (adapter.id.empty()) {
        line.value = adapter.why;
        line.hint = "an adapter belongs to one libtorch_cpu.so, which this torch does not have";
        return line;
    }
    if (!adapter.path.empty()) {
        line.verdict = adapter.outdated ? Verdict::warn : Verdict::ok;
        line.value = adapter.path;
        if (adapter.outdated) {
            line.value += ", built from other sources than these";
            line.hint = "is built anew at the next traced run; to have it now: " + command;
        }
        return line;
    }
    std::string missing;
    const auto need = [&](const std::string& have, const char* name) {
        if (have.empty()) missing += (missing.empty() ? "" : ", ") + std::string(name);
    };
    need(adapter.sources, "the sources of mp-trace");
    need(adapter.cmake, "cmake");
    need(adapter.ninja, "ninja");
    need(adapter.compiler, "a C++ compiler");
    line.value = "none yet for libtorch " + adapter.id;
    if (missing.empty()) {
        line.verdict = Verdict::warn;
        line.hint = "is built at the first traced run, in a minute or two; to have it now: " + command;
    } else {
        line.value += ", and it cannot be built here: no " + missing;
        line.hint = "install " + missing + ", then " + command;
    }
    return line;
}

void add_backend_lines(const TorchFacts& torch, std::vector<Line>& lines) {
    if (!torch.distributed.value_or(false)) {
        lines.push_back({.key = "torch.distributed", .value = "not built into this torch"});
        return;
    }
    const std::array<std::pair<const char*, const std::optional<bool>*>, 4> backends = {
        {{"gloo", &torch.gloo}, {"nccl", &torch.nccl}, {"mpi", &torch.mpi}, {"ucc", &torch.ucc}}};
    for (const auto& [name, there] : backends)
        lines.push_back(
            {.key = std::string("backend ") + name,
             .verdict = there->value_or(false) ? Verdict::ok : Verdict::note,
             .value = *there ? (**there ? "available" : "not built into this torch") : "not known"});
}

}  // namespace

Section launcher_section(const LauncherFacts& facts) {
    Section section{.name = "launcher"};
    const trace::Identity& id = facts.identity;
    Line line{.key = "launcher"};
    if (id.launcher.empty()) {
        line.value = "none: not started by torchrun, srun, Open MPI or MPICH";
    } else {
        line.verdict = Verdict::ok;
        line.value = id.launcher + ": rank " + number_or_unknown(id.rank.value) + " of " +
                     number_or_unknown(id.world_size) + ", local rank " + number_or_unknown(id.local_rank) +
                     ", restart " + std::to_string(id.restart);
    }
    section.lines.push_back(std::move(line));
    std::string matched;
    for (const std::string& variable : facts.matched) matched += (matched.empty() ? "" : " ") + variable;
    if (!matched.empty()) section.lines.push_back({.key = "from the variables", .value = matched});
    if (!id.job.empty()) section.lines.push_back({.key = "job", .value = id.job});
    section.lines.push_back({.key = "host", .value = id.host});
    section.lines.push_back(
        {.key = "srun and MPICH",
         .value = "recognised by their variables; mp-trace was not run under Slurm or MPICH"});
    return section;
}

Section environment_section(const EnvironmentFacts& environment, const ReachFacts& reach) {
    Section section{.name = "environment"};
    section.lines = {preload_line(reach), shim_line(reach)};
    const std::size_t before = section.lines.size();
    add_variable_lines(environment.variables, section.lines);
    if (section.lines.size() == before)
        section.lines.push_back({.key = "variables", .verdict = Verdict::ok, .value = "none that conflicts"});
    section.lines.push_back(
        {.key = "torch.compile",
         .value = "compiled regions are counted as not observed; mp-trace run --eager runs them "
                  "eagerly"});
    return section;
}

Section torch_section(const TorchFacts& torch, const AdapterFacts& adapter) {
    Section section{.name = "torch"};
    std::vector<Line>& lines = section.lines;
    if (!add_python_lines(torch, lines)) return section;
    if (!torch.isolated)
        lines.push_back({.key = "found through",
                         .value = "PYTHONPATH or the user's site-packages: python -I sees another or none"});
    lines.push_back(version_line(torch));
    lines.push_back(build_line(torch));
    if (!torch.libtorch.empty()) lines.push_back({.key = "libtorch_cpu.so", .value = torch.libtorch});
    lines.push_back(adapter_line(torch, adapter));
    add_backend_lines(torch, lines);
    const auto short_name = [](const std::string& dtype) {
        return dtype.starts_with("torch.") ? dtype.substr(6)
               : dtype.empty()             ? std::string("not known")
                                           : dtype;
    };
    lines.push_back({.key = "autocast dtype on the CPU", .value = short_name(torch.autocast_cpu)});
    lines.push_back({.key = "autocast dtype on GPUs", .value = short_name(torch.autocast_cuda)});
    return section;
}

}  // namespace mp::launch::doctor
