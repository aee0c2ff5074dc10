#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "embedded_doctor_scripts.hpp"
#include "kernels/base/child.hpp"
#include "runtime/launch/build_adapter.hpp"
#include "runtime/launch/doctor/json_values.hpp"
#include "runtime/launch/doctor/probe.hpp"
#include "runtime/launch/elf.hpp"
#include "runtime/launch/layout.hpp"
#include "runtime/launch/torch_finder.hpp"
#include "runtime/launch/variables.hpp"
#include "runtime/trace/cupti_probe.hpp"

namespace mp::launch::doctor {
namespace {

constexpr ChildLimits kStartLimits{.milliseconds = 20'000};

// The output of our script after `marker`. Output of the program's sitecustomize does not matter.
std::string_view said(std::string_view out, std::string_view marker) {
    const std::string line = "\nmp-trace-doctor:" + std::string(marker) + " ";
    const std::size_t at = out.find(line);
    if (at == std::string_view::npos) return {};
    out.remove_prefix(at + line.size());
    return out.substr(0, out.find('\n'));
}

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

std::string bytes_of(std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        const int high = hex_value(hex[i]), low = hex_value(hex[i + 1]);
        if (high < 0 || low < 0) return {};
        bytes += static_cast<char>(high * 16 + low);
    }
    return bytes;
}

std::string text_or_number(const nlohmann::json& value) {
    return value.is_number_integer() ? std::to_string(number_of(value)) : text_of(value);
}

ChildEnd ask(const std::string& python, bool isolated, const std::string& cupti_probe,
             const ChildLimits& limits) {
    std::vector<std::string> argv = {python};
    if (isolated) argv.push_back("-I");
    argv.insert(argv.end(), {"-c", std::string(embedded_doctor_scripts("torch_probe.py"))});
    if (!cupti_probe.empty()) argv.insert(argv.end(), {cupti_probe, std::to_string(sizeof(MpCuptiProbe))});
    return run_child({.arguments = argv,
                      .environment = untraced(Variables::of_this_process()).entries(),
                      .limits = limits});
}

bool is_another(const TorchFacts& isolated, const std::string& python) {
    const Result<std::optional<Torch>> theirs =
        torch_of_python(python, untraced(Variables::of_this_process()));
    if (!theirs || !*theirs || isolated.libtorch.empty()) return false;
    const Result<std::string> id = adapter_id(isolated.libtorch);
    return id && *id != (*theirs)->id;
}

std::string last_line(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
}

std::string on_path(std::initializer_list<const char*> names) {
    const char* const path = std::getenv("PATH");
    for (const char* const name : names) {
        std::string_view rest = path ? path : "/usr/bin:/bin";
        while (!rest.empty()) {
            const std::size_t cut = std::min(rest.find(':'), rest.size());
            const std::string file = std::string(rest.substr(0, cut)) + "/" + name;
            if (cut > 0 && access(file.c_str(), X_OK) == 0) return file;
            rest.remove_prefix(std::min(cut + 1, rest.size()));
        }
    }
    return {};
}

}  // namespace

TorchFacts torch_from_output(std::string_view out) {
    TorchFacts facts;
    const std::string_view answer = said(out, "facts");
    const nlohmann::json json = nlohmann::json::parse(answer, nullptr, false);
    if (!json.is_object()) {
        facts.fault = answer.empty() ? "gave no answer" : "gave an answer that is not readable";
        return facts;
    }
    facts.found = flag_in(json, "found").value_or(false);
    facts.fault = text_in(json, "fault");
    facts.executable = text_in(json, "executable");
    facts.python_version = text_in(json, "python_version");
    facts.version = text_in(json, "version");
    facts.file = text_in(json, "file");
    facts.libtorch = text_in(json, "libtorch");
    facts.cuda_built = text_in(json, "cuda_built");
    facts.hip_built = text_in(json, "hip_built");
    facts.cudnn = text_or_number(member(json, "cudnn"));
    facts.cxx11_abi = flag_in(json, "cxx11_abi");
    facts.cuda_available = flag_in(json, "cuda_available");
    facts.bf16_supported = flag_in(json, "bf16_supported");
    facts.bf16_supported_native = flag_in(json, "bf16_supported_native");
    facts.distributed = flag_in(json, "distributed");
    facts.nccl = flag_in(json, "nccl");
    facts.gloo = flag_in(json, "gloo");
    facts.mpi = flag_in(json, "mpi");
    facts.ucc = flag_in(json, "ucc");
    facts.autocast_cpu = text_in(json, "autocast_cpu");
    facts.autocast_cuda = text_in(json, "autocast_cuda");
    facts.cpu_capability = text_in(json, "cpu_capability");
    facts.mkldnn_bf16 = flag_in(json, "mkldnn_bf16");
    facts.mkldnn_fp16 = flag_in(json, "mkldnn_fp16");
    if (const nlohmann::json& parts = member(json, "nccl_version"); parts.is_array())
        for (const nlohmann::json& part : parts) facts.nccl_version.push_back(number_of(part));
    if (const nlohmann::json& switches = member(json, "switches"); switches.is_object())
        for (const auto& [name, value] : switches.items()) facts.switches[name] = text_of(value);
    if (const nlohmann::json& directories = member(json, "library_dirs"); directories.is_array())
        for (const nlohmann::json& directory : directories) facts.library_dirs.push_back(text_of(directory));
    facts.cupti = bytes_of(said(out, "cupti"));
    return facts;
}

TorchFacts probe_torch(const std::string& python, const std::string& cupti_probe, int milliseconds) {
    const ChildLimits limits{.milliseconds = milliseconds};
    const auto read = [&](const ChildEnd& end) {
        TorchFacts facts = torch_from_output(end.out);
        // The answer is valid even if the child dies after it (in CUPTI, or at exit).
        if (!facts.executable.empty()) return facts;
        facts.fault = end.good() ? facts.fault : describe(end, limits);
        facts.fault_text = last_line(end.err);
        return facts;
    };
    TorchFacts facts = read(ask(python, true, cupti_probe, limits));
    // With -I no code of the user runs, but the program itself is started without -I. PYTHONPATH or the
    // user's site-packages may then lead to a different torch, or to one where -I finds none.
    const bool answered = facts.fault.empty() && !facts.executable.empty();
    if (answered && (!facts.found || is_another(facts, python))) {
        TorchFacts open = read(ask(python, false, cupti_probe, limits));
        open.isolated = false;
        if (open.found) facts = std::move(open);
    }
    facts.python = python;
    return facts;
}

ReachFacts probe_reach(const std::string& python, const std::string& preload, const std::string& shim) {
    ReachFacts facts{.preload = preload, .shim = shim};
    facts.preload_there = access(preload.c_str(), R_OK) == 0;
    facts.shim_there = access((shim + "/sitecustomize.py").c_str(), R_OK) == 0;
    if (!facts.preload_there) return facts;
    facts.asked = true;
    Variables variables = untraced(Variables::of_this_process());
    const auto before = [&](const char* name) {
        return std::string(variables.get(name) ? variables.get(name) : "");
    };
    variables.set("LD_PRELOAD", with_preload(before("LD_PRELOAD"), preload));
    if (facts.shim_there) variables.set("PYTHONPATH", with_shim(before("PYTHONPATH"), shim));
    const std::string script(embedded_doctor_scripts("reach_probe.py"));
    const ChildEnd end = run_child({.arguments = {python, "-c", script, shim},
                                    .environment = variables.entries(),
                                    .limits = kStartLimits});
    const nlohmann::json json = nlohmann::json::parse(said(end.out, "reach"), nullptr, false);
    if (!json.is_object()) {
        facts.fault = end.good() ? "gave no answer" : describe(end, kStartLimits);
        return facts;
    }
    facts.preload_mapped = flag_in(json, "preload").value_or(false);
    facts.shim_ran = flag_in(json, "shim").value_or(false);
    facts.sitecustomize = text_in(json, "sitecustomize");
    return facts;
}

AdapterFacts probe_adapter(const TorchFacts& torch, const std::vector<std::string>& directories,
                           const std::string& sources) {
    AdapterFacts facts{.searched = directories};
    if (access((sources + "/instrument/torch/CMakeLists.txt").c_str(), R_OK) == 0) facts.sources = sources;
    facts.cmake = on_path({"cmake"});
    facts.compiler = on_path({"c++", "g++", "clang++", "clang++-19"});
    facts.ninja = on_path({"ninja"});
    if (torch.libtorch.empty()) {
        facts.why = "libtorch_cpu.so is not in the process that imported torch";
        return facts;
    }
    const Result<std::string> id = adapter_id(torch.libtorch);
    if (!id) {
        facts.why = id.error().message;
        return facts;
    }
    facts.id = *id;
    facts.path = find_adapter(directories, *id);
    // Adapters in the cache were built on demand and can be built again; the others are installed with
    // mp-trace.
    const std::string cache =
        adapter_cache([](const char* name) -> const char* { return std::getenv(name); });
    const bool cached = !facts.path.empty() && parent_of(facts.path) == cache;
    facts.outdated = cached && !facts.sources.empty() && is_outdated(cache, *id, sources);
    return facts;
}

CuptiAnswer cupti_from_bytes(std::string_view bytes) {
    CuptiAnswer answer;
    MpCuptiProbe probe{};
    if (bytes.size() != sizeof probe) {
        answer.why = "no answer";
        return answer;
    }
    std::memcpy(&probe, bytes.data(), sizeof probe);
    const auto text = [](const auto& room) { return std::string(room, strnlen(room, sizeof room)); };
    answer.asked = true;
    answer.state = probe.state;
    answer.code = probe.code;
    answer.version = probe.version;
    answer.library = text(probe.library);
    answer.call = text(probe.call);
    answer.holder = text(probe.holder);
    answer.message = text(probe.message);
    return answer;
}

CuptiAnswer probe_cupti(const std::string& library, const std::vector<std::string>& directories) {
    constexpr ChildLimits kLimits{.milliseconds = 30'000};
    const Machine machine = this_machine();
    std::string joined;
    for (const std::string& directory : directories) joined += (joined.empty() ? "" : ":") + directory;
    const Result<std::string> bytes = run_forked(
        [&]() -> std::string {
            std::string why;
            void* const loaded = machine.open(library.c_str(), why);
            void* const function = loaded ? machine.symbol(loaded, "mptrace_cupti_probe") : nullptr;
            MpCuptiProbe probe{};
            probe.size = sizeof probe;
            if (!function || reinterpret_cast<MpCuptiProbeFunction>(function)(&probe, joined.c_str()) != 0)
                return why;
            return {reinterpret_cast<const char*>(&probe), sizeof probe};
        },
        kLimits);
    CuptiAnswer answer;
    if (!bytes) {
        answer.why = bytes.error().message;
    } else {
        answer = cupti_from_bytes(*bytes);
        if (!answer.asked) answer.why = bytes->empty() ? "is of another version" : *bytes;
    }
    return answer;
}

}  // namespace mp::launch::doctor
