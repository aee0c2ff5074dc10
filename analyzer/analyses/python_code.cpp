#include "analyzer/analyses/python_code.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/control_flow.hpp"
#include "analyzer/analyses/run_order.hpp"
#include "analyzer/analyses/support.hpp"

namespace mp::lint {
namespace {

bool has_component(std::string_view path, std::string_view name) {
    for (auto at = path.find(name); at != std::string_view::npos; at = path.find(name, at + 1)) {
        const bool begins = at == 0 || path[at - 1] == '/';
        const auto end = at + name.size();
        if (begins && end < path.size() && path[end] == '/') return true;
    }
    return false;
}

bool is_integral(DType d) { return is_integer(d) || d == DType::boolean; }

// x.dtype == torch.float16, x.dtype in (torch.float16, torch.bfloat16). A comparison with torch.bool
// asks for something else.
bool asks_for_dtype(const Call& call) {
    constexpr std::array<std::string_view, 4> kCompares{"__eq__", "__ne__", "__contains__", "__is__"};
    if (!any_of(leaf(call.name.str()), kCompares)) return false;
    bool asks = false;
    for (const Operand& value : call.args) {
        if (value.shape == Shape::dtype && is_integral(value.dtype)) return false;
        asks = asks || value.shape == Shape::dtype || value.name.str().ends_with(".dtype");
    }
    return asks;
}

bool names_precision(std::string_view condition) {
    constexpr std::array<std::string_view, 7> kWords{"fp16", "bf16",    "half",     "float16",
                                                     "amp",  "float32", "precision"};
    return std::ranges::any_of(kWords, [&](std::string_view word) { return mentions(condition, word); });
}

bool tests_dtype(const Function& f, std::uint32_t block) {
    for (const Edge& edge : f.flow[block].to)
        if (names_precision(edge.condition.str())) return true;
    return std::ranges::any_of(f.calls,
                               [&](const Call& call) { return call.block == block && asks_for_dtype(call); });
}

// cfg["amp"], cfg.get("amp", False), getattr(cfg, "amp"): the name of what is read; empty for other calls.
std::string_view setting_read(const Call& call) {
    constexpr std::array<std::string_view, 3> kReads{"__getitem__", "get", "getattr"};
    return any_of(leaf(call.name.str()), kReads) && call.args.size() > 1 ? spelled(call.args[1])
                                                                         : std::string_view();
}

// def run(amp=True), cfg.get("amp", True)
bool is_on_by_default(const Function& f, std::string_view name) {
    if (name.empty()) return false;
    return std::ranges::any_of(
               f.params,
               [&](const Parameter& p) { return p.name.str() == name && p.constant.str() == "true"; }) ||
           std::ranges::any_of(f.calls, [&](const Call& call) {
               return setting_read(call) == name && is_true(&call.args.back());
           });
}

bool tests_setting(const Function& f, std::uint32_t block) {
    const auto chooses = [&](std::string_view name) {
        return names_precision(name) && !is_on_by_default(f, leaf(name));
    };
    return std::ranges::any_of(f.flow[block].to,
                               [&](const Edge& edge) { return chooses(edge.condition.str()); }) ||
           std::ranges::any_of(f.calls, [&](const Call& call) {
               return call.block == block && (asks_for_dtype(call) || chooses(setting_read(call)));
           });
}

// q.device.type == 'cuda', x.is_cuda, torch.cuda.is_available()
bool asks_for_cuda(const Edge& edge) { return mentions(edge.condition.str(), "cuda"); }

bool tests_cuda(const Function& f, std::uint32_t block) {
    return std::ranges::any_of(f.flow[block].to, asks_for_cuda);
}

bool is_below(const RuleContext& context, Symbol file) {
    return !context.root.empty() && file.str().starts_with(context.root);
}

// Files at the root of the project: it is a program, and no folder of checkouts.
bool has_own_files(const RuleContext& context) {
    return std::ranges::any_of(context.program.units(), [&](const Unit& unit) {
        return is_below(context, unit.path) &&
               unit.path.str().rfind('/') <= unit.path.str().find('/', context.root.size());
    });
}

// By a path that starts at the root of the project.
std::string_view library_at(const RuleContext& context, std::string_view path) {
    // Where a library's own repository has its package, and what is in the package.
    struct Library {
        std::string_view own, package;
        std::array<std::string_view, 5> parts;
    };
    static constexpr std::array<Library, 19> kLibraries{
        {{"src/", "transformers", {"models/", "generation/", "quantizers/", "utils/", "trainer.py"}},
         {"src/", "diffusers", {"models/", "pipelines/", "schedulers/", "loaders/", "training_utils.py"}},
         {"src/", "peft", {"tuners/", "utils/", "mapping.py", "peft_model.py"}},
         {"src/", "accelerate", {"accelerator.py", "utils/", "optimizer.py", "launchers.py"}},
         {"", "llava", {"train/", "model/", "eval/", "serve/", "mm_utils.py"}},
         {"", "fairseq", {"models/", "modules/", "optim/", "tasks/", "trainer.py"}},
         {"", "apex", {"amp/", "contrib/", "optimizers/", "fp16_utils/", "parallel/"}},
         {"", "apex", {"csrc/", "apex/"}},
         {"", "deepspeed", {"runtime/", "ops/", "inference/", "moe/"}},
         {"", "maskrcnn_benchmark", {"csrc/", "layers/", "modeling/", "engine/"}},
         {"", "timm", {"models/", "layers/", "optim/", "utils/", "scheduler/"}},
         {"", "detectron2", {"layers/", "modeling/", "engine/", "solver/", "checkpoint/"}},
         {"", "mmcv", {"ops/", "runner/", "cnn/", "parallel/"}},
         {"", "mmdet", {"models/", "core/", "apis/", "datasets/"}},
         {"", "exllama", {"cu", "q4_", "matrix.cuh", "hip_compat", "exllama_ext.cpp"}},
         {"", "exllama_kernels", {"cu", "matrix.cuh", "hip_compat", "exllama_ext.cpp"}},
         {"", "exllamav2", {"cuda/", "cpp/", "ext.cpp", "config.h", "exllamav2_ext/"}},
         {"", "exllamav2_kernels", {"cuda/", "cpp/", "ext.cpp", "config.h"}},
         {"", "fastchat", {"train/", "model/", "serve/", "eval/"}}}};
    if (path.starts_with('/')) path.remove_prefix(1);
    for (const Library& library : kLibraries)
        for (auto at = path.find(library.package); at != std::string_view::npos;
             at = path.find(library.package, at + 1)) {
            const std::string_view before = path.substr(0, at);
            const std::string_view after = path.substr(at + library.package.size());
            if ((at > 0 && before.back() != '/') || !after.starts_with('/')) continue;
            // Also below a folder that has the library's name: its checkout, beside others and not in a program.
            const std::string checkout = std::string(library.package) + "/" + std::string(library.own);
            if (before == library.own || (before == checkout && !has_own_files(context))) continue;
            const auto has = [&](std::string_view part) {
                return !part.empty() && after.substr(1).starts_with(part);
            };
            if (std::ranges::any_of(library.parts, has)) return library.package;
        }
    return {};
}

// A library whose copies get names of their own is known by several of its files, deeper in the tree than in its own
// repository.
struct Layout {
    std::string_view library;
    std::ptrdiff_t folders;  // above the files, in its own repository
    std::array<std::string_view, 6> files;
};
constexpr std::ptrdiff_t kEnoughFiles = 4;
constexpr std::array<Layout, 2> kLayouts{
    {{"llava",
      1,
      {"train/train.py", "mm_utils.py", "conversation.py", "constants.py", "model/builder.py", "utils.py"}},
     {"XMem",
      0,
      {"model/trainer.py", "model/network.py", "inference/inference_core.py", "inference/memory_manager.py",
       "dataset/vos_dataset.py", "util/configuration.py"}}}};

bool has_file(const Program& program, std::string_view folder, std::string_view file) {
    return std::ranges::any_of(program.units(), [&](const Unit& unit) {
        const std::string_view path = unit.path.str();
        return path.size() == folder.size() + file.size() && path.starts_with(folder) && path.ends_with(file);
    });
}

// The units are looked through only for a file that is itself one of a library's.
std::string_view library_with_files_of(const RuleContext& context, std::string_view path) {
    for (const Layout& layout : kLayouts)
        for (const std::string_view file : layout.files) {
            if (!path.ends_with(file)) continue;
            const std::string_view folder = path.substr(0, path.size() - file.size());
            if (!folder.starts_with(context.root) || !folder.ends_with('/')) continue;
            const auto folders = std::ranges::count(folder.substr(context.root.size()), '/') - 1;
            const auto is_there = [&](std::string_view other) {
                return has_file(context.program, folder, other);
            };
            if (folders > layout.folders && std::ranges::count_if(layout.files, is_there) >= kEnoughFiles)
                return layout.library;
        }
    return {};
}

// flash-attention-2.8.0, cub-v1.17: a release of another project.
bool is_release(std::string_view folder) {
    std::string_view version = folder.substr(folder.rfind('-') + 1);
    if (version.size() == folder.size()) return false;
    if (version.starts_with('v')) version.remove_prefix(1);
    return version.find('.') != std::string_view::npos &&
           version.find_first_not_of("0123456789.") == std::string_view::npos && version.front() != '.' &&
           version.back() != '.';
}

// build/lib, build/lib.linux-x86_64-cpython-312: where setuptools copies what it builds.
bool is_built(std::string_view path) {
    constexpr std::string_view kFolder = "build/lib";
    const std::size_t at = path.find(kFolder);
    if (at == std::string_view::npos || (at != 0 && path[at - 1] != '/')) return false;
    const std::string_view rest = path.substr(at + kFolder.size());
    return rest.starts_with('/') || rest.starts_with('.');
}

// 2024-12-04_ValueEmbed, 20241204: the state of that day, kept as it was.
bool is_dated(std::string_view folder) {
    std::string digits;
    for (const char c : folder.substr(0, 10)) {
        if (c >= '0' && c <= '9')
            digits += c;
        else if (c != '-' && c != '_')
            break;
    }
    if (digits.size() != 8 || !(digits.starts_with("19") || digits.starts_with("20"))) return false;
    const auto two = [&](std::size_t at) { return 10 * (digits[at] - '0') + digits[at + 1] - '0'; };
    return two(4) >= 1 && two(4) <= 12 && two(6) >= 1 && two(6) <= 31;
}

// old/, old_mains/, train_old.py: put away, too.
bool is_called_old(std::string_view name) {
    return name == "old" || name.starts_with("old_") || name.ends_with("_old");
}

template <typename Test>
bool is_in_folder(std::string_view path, Test test) {
    for (std::size_t end = path.find('/'), begin = 0; end != std::string_view::npos;
         begin = end + 1, end = path.find('/', begin))
        if (test(path.substr(begin, end - begin))) return true;
    return false;
}

}  // namespace

// Whether a file's name has one of these words: "func_test_attention", "sanity-check".
static bool has_word(std::string_view stem, std::span<const std::string_view> words) {
    for (std::size_t from = 0; from <= stem.size();) {
        const std::size_t end = std::min(stem.find_first_of("_-", from), stem.size());
        if (any_of(stem.substr(from, end - from), words)) return true;
        from = end + 1;
    }
    return false;
}

bool is_header(std::string_view path) {
    constexpr std::array<std::string_view, 5> kEndings{".h", ".hh", ".hpp", ".hxx", ".cuh"};
    return std::ranges::any_of(kEndings, [&](std::string_view ending) { return path.ends_with(ending); });
}

CodeKind code_kind(std::string_view path) {
    constexpr std::array<std::string_view, 5> kTests{"tests", "test", "testing", "unit_tests", "unittests"};
    constexpr std::array<std::string_view, 4> kBenchmarks{"benchmarks", "benchmark", "bench", "perf"};
    // Kernels there are what others are compared with, or show how to call one; a script in Python may train.
    constexpr std::array<std::string_view, 4> kShown{"baselines", "baseline", "examples", "example"};
    constexpr std::array<std::string_view, 2> kCompared{"baselines", "baseline"};
    // Folders for other projects, and libraries of headers that projects copy into their own tree.
    constexpr std::array<std::string_view, 15> kCopies{
        "third_party", "third-party", "thirdparty", "3rdparty", "3rd_party", "3rd-party", "3rd", "vendor",
        "vendored",    "externals",   "submodules", "cutlass",  "cute",      "thrust",    "cub"};
    constexpr std::array<std::string_view, 6> kRetired{"archive",  "archived", "deprecated",
                                                       "obsolete", "backup",   "backups"};
    const auto in_any = [path](std::span<const std::string_view> folders) {
        return std::ranges::any_of(folders, [path](std::string_view f) { return has_component(path, f); });
    };
    const std::string_view file = path.substr(path.rfind('/') + 1);
    const std::string_view stem = file.substr(0, file.find('.'));
    // A script that is called "test" may evaluate a model, and one that trains as well is no test.
    constexpr std::array<std::string_view, 7> kTried{"test",   "tests",  "check", "checks",
                                                     "sanity", "tester", "smoke"};
    constexpr std::array<std::string_view, 4> kTrains{"train", "training", "trainer", "main"};
    const bool tries = stem != "test" && has_word(stem, kTried) && !has_word(stem, kTrains);
    const auto is_of_tests = [](std::string_view folder) {
        return folder.ends_with("_test") || folder.ends_with("_tests");
    };
    if (tries || stem.starts_with("test_") || stem.ends_with("_test") || stem == "conftest" ||
        in_any(kTests) || is_in_folder(path, is_of_tests))
        return CodeKind::test;
    const bool is_old = is_called_old(stem) || is_in_folder(path, is_called_old);
    if (is_old || in_any(kRetired) || is_in_folder(path, is_dated)) return CodeKind::retired;
    if (in_any(kCopies) || is_in_folder(path, is_release) || is_built(path)) return CodeKind::vendored;
    const bool is_script = file.ends_with(".py") || file.ends_with(".ipynb");
    const bool measures = stem == "bench" || stem.ends_with("_bench") || stem.ends_with("_benchmark") ||
                          stem.starts_with("bench_") || stem.starts_with("benchmark") || stem == "profile" ||
                          stem.starts_with("profile_") || stem.starts_with("profiling") ||
                          (!is_script && has_word(stem, kCompared));
    if (measures || in_any(kBenchmarks)) return CodeKind::benchmark;
    if (in_any(kShown) && !is_script) return CodeKind::benchmark;
    return CodeKind::product;
}

std::string_view copied_library(const RuleContext& context, Symbol file) {
    if (!is_below(context, file)) return {};
    const std::string_view named = library_at(context, file.str().substr(context.root.size()));
    return named.empty() ? library_with_files_of(context, file.str()) : named;
}

CodeKind kind_by_name(const Function& f) {
    const std::string_view name = leaf(f.name.str());
    if (name.starts_with("test_")) return CodeKind::test;
    const bool measures = name == "profile" || name == "benchmark" || name.starts_with("profile_") ||
                          name.starts_with("benchmark_") || name.starts_with("bench_");
    return measures ? CodeKind::benchmark : CodeKind::product;
}

CodeKind code_kind(const RuleContext& context, Symbol file) {
    return context.code_kinds.get(file, [&] {
        std::string_view path = file.str();
        if (is_below(context, file)) path.remove_prefix(context.root.size());
        const CodeKind kind = code_kind(path);
        return kind == CodeKind::product && !copied_library(context, file).empty() ? CodeKind::vendored
                                                                                   : kind;
    });
}

// A level lower would not do: a test fixes small values on purpose, a benchmark throws its results away.
Severity severity_in(CodeKind kind, Severity severity) {
    return kind == CodeKind::product ? severity : Severity::note;
}

bool describes_shapes(const Function& f) {
    constexpr std::array<std::string_view, 4> kRegisters{"register_fake", "impl_abstract", "register_meta",
                                                         "register_abstract"};
    return std::ranges::any_of(f.annotations, [&](Symbol annotation) {
        const std::string_view text = annotation.str();
        const std::size_t arguments = std::min(text.find('('), text.size());
        const std::string_view rest = text.substr(arguments);
        return any_of(leaf(text.substr(0, arguments)), kRegisters) ||
               rest.find("'Meta'") != std::string_view::npos ||
               rest.find("\"Meta\"") != std::string_view::npos;
    });
}

// The block runs only on some sides of a branch that tests.
template <typename Tests>
static bool is_guarded(const Function& f, std::uint32_t block, Tests tests) {
    if (block >= f.flow.size()) return false;
    for (std::uint32_t b = 0; b < f.flow.size(); ++b) {
        std::vector<Edge> ways;
        for (const Edge& edge : f.flow[b].to)
            if (!edge.raises) ways.push_back(edge);
        if (b == block || ways.size() < 2 || !tests(f, b)) continue;
        const auto taken =
            std::ranges::count_if(ways, [&](const Edge& edge) { return reaches(f, edge.to, block, b); });
        if (taken > 0 && static_cast<std::size_t>(taken) < ways.size()) return true;
    }
    return false;
}

bool is_dtype_guarded(const Function& f, std::uint32_t block) { return is_guarded(f, block, tests_dtype); }

bool is_left_to_setting(const Function& f, std::uint32_t block) {
    return is_guarded(f, block, tests_setting);
}

const Call* dtype_test(const Function& f, std::uint32_t block) {
    for (const Call& call : f.calls) {
        if (!asks_for_dtype(call)) continue;
        const Symbol result = call.result.name;  // is_half = x.dtype == torch.half
        const auto tests = [&](const Function& in, std::uint32_t b) {
            return call.block == b ||
                   (!result.empty() &&
                    std::ranges::any_of(in.flow[b].to, [&](const Edge& e) { return e.condition == result; }));
        };
        if (is_guarded(f, block, tests)) return &call;
    }
    return nullptr;
}

bool is_cuda_guarded(const Function& f, std::uint32_t block) { return is_guarded(f, block, tests_cuda); }

bool is_without_cuda(const Function& f, std::uint32_t block) {
    return std::ranges::any_of(f.flow, [&](const Block& from) {
        return std::ranges::any_of(from.to, [&](const Edge& edge) {
            return asks_for_cuda(edge) && runs_only_if(f, block, edge.condition, false);
        });
    });
}

bool is_conditional(const Function& f, std::uint32_t block) {
    return is_guarded(f, block, [](const Function& in, std::uint32_t b) {
        return std::ranges::any_of(in.flow[b].to, [](const Edge& edge) { return !edge.condition.empty(); });
    });
}

bool is_behind_branch(const Function& f, std::uint32_t block) {
    return is_guarded(f, block, [](const Function&, std::uint32_t) { return true; });
}

}  // namespace mp::lint
