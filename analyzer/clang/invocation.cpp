// Translates a build's command into the one or two clang commands that parse the file.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "analyzer/clang/command_line.hpp"
#include "analyzer/clang/extract.hpp"
#include "analyzer/clang/headers.hpp"
#include "analyzer/clang/nvcc.hpp"
#include "analyzer/clang/parse_options.hpp"
#include "kernels/base/paths.hpp"

namespace fs = std::filesystem;
using std::string_view;

namespace mp::lint {
namespace {

bool is_one_of(string_view text, std::initializer_list<string_view> all) {
    return std::find(all.begin(), all.end(), text) != all.end();
}

bool is_launcher(const std::string& word) {
    return is_one_of(file_name(word), {"ccache", "sccache", "distcc", "icecc", "buildcache", "env", "time"});
}

using Words = std::vector<std::string>;

bool is_shell_operator(const std::string& word) { return is_one_of(word, {"&&", ";", "||"}); }

// "cd dir && nvcc -c ... && post-build": the part that compiles, else the last part.
Words compiling_part(const Words& all) {
    auto begin = all.begin();
    for (;;) {
        const auto end = std::find_if(begin, all.end(), is_shell_operator);
        const bool compiles = std::find(begin, end, "-c") != end;
        if (compiles || end == all.end()) return {begin, end};
        begin = end + 1;
    }
}

// "CC=gcc ccache nvcc -c ...": the words from the compiler on.
Words from_compiler(const Words& all) {
    const Words part = compiling_part(all);
    const auto is_before = [](const std::string& word) {
        const auto equals = word.find('=');
        const bool variable = equals != std::string::npos && word.front() != '-' && word.find('/') > equals;
        return word == ":" || variable || is_launcher(word);
    };
    return {std::find_if_not(part.begin(), part.end(), is_before), part.end()};
}

enum class Compiler { nvcc, cxx, c };

Compiler compiler_of(const std::string& program) {
    const std::string name(file_name(program));
    if (name.find("nvcc") != std::string::npos) return Compiler::nvcc;
    if (name.find("++") != std::string::npos || name.starts_with("c++")) return Compiler::cxx;
    const bool is_c =
        name == "cc" || name.find("gcc") != std::string::npos || name.find("clang") != std::string::npos;
    return is_c ? Compiler::c : Compiler::cxx;
}

std::string language_of(const std::string& file, const std::string& stated, Compiler compiler) {
    if (!stated.empty()) return stated;
    const std::string extension = fs::path(file).extension().string();
    if (is_one_of(extension, {".cu", ".cuh"})) return "cuda";
    return extension == ".c" && compiler != Compiler::cxx ? "c" : "c++";
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// Candidate toolkits in order of priority: from the user, from the command, from the environment.
std::vector<std::string> toolkit_candidates(const ExtractOptions& options, const std::string& program,
                                            const std::vector<std::string>& include_dirs) {
    if (!options.cuda_path.empty()) return {options.cuda_path};
    std::vector<std::string> all;
    for (const auto& dir : include_dirs) {
        const auto tidy = fs::path(dir).has_filename() ? fs::path(dir) : fs::path(dir).parent_path();
        if (tidy.filename() == "include" && has_cuda_headers(dir)) all.push_back(tidy.parent_path().string());
    }
    const fs::path compiler = program;
    if (compiler.is_absolute() && compiler_of(program) == Compiler::nvcc) {
        all.push_back(compiler.parent_path().parent_path().string());
    }
    all.push_back(environment("CUDA_PATH"));
    all.push_back(environment("CUDA_HOME"));
    all.emplace_back("/usr/local/cuda");
    all.emplace_back("/usr/lib/cuda");
    return all;
}

class Builder {
public:
    Builder(const CompileCommand& command, const ExtractOptions& options) : options_(options) {
        invocation_.directory = absolute_file(command.directory, "");
        invocation_.file = absolute_file(command.file, invocation_.directory);
        read(command);
    }

    Invocation run() {
        choose_headers();
        invocation_.flags = std::move(notes_.flags);
        invocation_.architectures = notes_.architectures;
        const bool cuda = language_ == "cuda";
        invocation_.language = cuda ? Language::cuda : Language::cpp;
        invocation_.host = arguments("--cuda-host-only");
        if (cuda) {
            invocation_.device = arguments("--cuda-device-only");
            say_toolkit_version(invocation_.device);
        }
        invocation_.warnings = std::move(notes_.warnings);
        return std::move(invocation_);
    }

private:
    void read(const CompileCommand& command) {
        auto words = from_compiler(command.arguments);
        if (!words.empty()) program_ = words.front();
        const auto compiler = compiler_of(program_);
        const bool is_nvcc = compiler == Compiler::nvcc;
        if (!words.empty()) words.erase(words.begin());
        words.insert(words.end(), options_.extra_args.begin(), options_.extra_args.end());
        words = expand_response_files(words, invocation_.directory, is_nvcc, notes_);
        if (is_nvcc) words = nvcc_to_clang(words, notes_);
        user_ = parse_options(words, invocation_.directory, notes_);
        language_ = language_of(invocation_.file, user_.language, compiler);
    }

    void choose_headers() {
        const auto toolkit = wanted_toolkit();
        drop_other_toolkits(toolkit.path);
        if (language_ == "cuda") {
            cuda_headers(toolkit);
        } else {
            later("-idirafter", toolkit.path.empty() ? ours("cuda") : toolkit.path + "/include");
            if (!toolkit.path.empty()) later("-idirafter", toolkit.path + "/include/cccl");
        }
        torch_headers();
        torch_macros();
        later("-idirafter", ours("other"));
    }

    CudaToolkit wanted_toolkit() {
        if (options_.cuda == CudaHeaders::stubs) return {};
        auto toolkit = find_toolkit(toolkit_candidates(options_, program_, user_.include_dirs));
        const bool asked = options_.cuda == CudaHeaders::toolkit || !options_.cuda_path.empty();
        if (toolkit.path.empty() && asked) {
            notes_.warn("no CUDA toolkit" + (options_.cuda_path.empty() ? "" : " in " + options_.cuda_path) +
                        "; mp-lint's own CUDA headers are used");
        }
        if (!toolkit.path.empty()) invocation_.installed.push_back(toolkit.path + "/include/");
        return toolkit;
    }

    void cuda_headers(const CudaToolkit& toolkit) {
        const std::string arch = "--cuda-gpu-arch=" + choose_architecture(notes_.architectures);
        first_ = {arch, "-nocudalib"};
        if (toolkit.path.empty()) {
            invocation_.headers = "stubs";
            first_.insert(first_.end(),
                          {"-nocudainc", "-isystem", ours("cuda"), "-include", "mp_cuda_stub.h"});
            return;
        }
        toolkit_version_ = toolkit.version;
        invocation_.headers = toolkit.version.empty() ? "toolkit" : "toolkit " + toolkit.version;
        // Included after clang's own CUDA wrapper. Its directory is searched last, so that the toolkit's
        // own headers come first.
        first_.insert(first_.end(), {"--cuda-path=" + toolkit.path, "-include", "mp_cuda_compat.h"});
        const std::string cccl = toolkit.path + "/include/cccl";
        if (fs::is_directory(cccl)) first_.insert(first_.end(), {"-isystem", cccl});
        later("-idirafter", ours("shims"));
    }

    // clang's driver gives a device pass the toolkit's version only together with libdevice, which we do
    // not use; kernel launches need the version. 12.5 is the newest version that clang 19 knows.
    void say_toolkit_version(std::vector<std::string>& device) const {
        if (toolkit_version_.empty()) return;
        const bool newest = std::atof(toolkit_version_.c_str()) > 12.5;
        const std::string option = "-target-sdk-version=" + (newest ? "12.5" : toolkit_version_);
        device.insert(device.begin() + 1, {"-Xclang", option});
    }

    // Headers of two toolkits, or of one toolkit and our stubs, must not mix.
    void drop_other_toolkits(const std::string& chosen) {
        rewrite_dirs([&](const std::string& dir) -> string_view {
            if (!has_cuda_headers(dir)) return "";
            std::error_code failed;
            const bool same = !chosen.empty() && fs::equivalent(dir, chosen + "/include", failed);
            return same ? "-isystem" : "drop";
        });
    }

    // PyTorch's own headers if the build has them, ours otherwise. Never both.
    void torch_headers() {
        const auto dirs = installed_torch();
        const bool drop = dirs.empty() || options_.torch == TorchHeaders::directory;
        rewrite_dirs([&](const std::string& dir) -> string_view {
            return !has_torch_headers(dir) ? "" : drop ? "drop" : "-isystem";
        });
        // GuardedFiles hides a libtorch-dev in the system's directories.
        if (dirs.empty()) return later("-idirafter", ours("torch"));
        for (const auto& dir : dirs) {
            if (options_.torch == TorchHeaders::directory) later("-isystem", dir);
            const auto api = fs::path(dir) / "torch/csrc/api/include";
            if (fs::is_directory(api)) later("-idirafter", api.string());
            for (const auto* part : {"/torch/", "/ATen/", "/c10/", "/caffe2/"})
                invocation_.installed.push_back(dir + part);
        }
        later("-idirafter", ours("shims"));
    }

    // The include directories with the libtorch to use; none: our headers.
    std::vector<std::string> installed_torch() {
        if (options_.torch == TorchHeaders::stubs) return {};
        auto dirs = user_.include_dirs;
        dirs.insert(dirs.end(), {"/usr/local/include", "/usr/include"});
        if (options_.torch == TorchHeaders::directory) {
            const std::string& given = options_.torch_path;
            dirs = {given + "/torch/include", given + "/include", given};
        }
        std::erase_if(dirs, [](const std::string& dir) { return !has_torch_headers(dir); });
        if (options_.torch == TorchHeaders::directory) {
            if (dirs.empty())
                notes_.warn("no libtorch in " + options_.torch_path + "; mp-lint's own headers are used");
            dirs.resize(std::min<std::size_t>(dirs.size(), 1));
        }
        return dirs;
    }

    // The macros that torch's extension builder defines; without them comparisons of c10::Half are
    // ambiguous. Before the command's own options, which may undefine them.
    void torch_macros() {
        if (language_ != "cuda" || !is_torch_build()) return;
        first_.insert(first_.end(), {"-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__",
                                     "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__"});
    }

    bool is_torch_build() const {
        const bool named = std::any_of(user_.arguments.begin(), user_.arguments.end(), [](const auto& a) {
            return a.find("TORCH_EXTENSION_NAME") != std::string::npos;
        });
        return named ||
               std::any_of(user_.include_dirs.begin(), user_.include_dirs.end(), [](const auto& dir) {
                   return dir.ends_with("torch/include") || has_torch_headers(dir);
               });
    }

    // Replaces the option of each include directory: "" keeps it, "drop" removes the directory.
    template <typename Choose>
    void rewrite_dirs(Choose choose) {
        auto& all = user_.arguments;
        for (std::size_t i = 0; i + 1 < all.size();) {
            const bool dir = is_one_of(all[i], {"-I", "-isystem", "-iquote", "-idirafter", "-cxx-isystem"});
            string_view choice = dir ? string_view(choose(all[i + 1])) : string_view();
            // As an explicit directory it would come before the standard library's own directories and
            // break their #include_next. gcc and clang ignore it, too.
            if (dir && is_one_of(all[i + 1], {"/usr/include", "/usr/include/"})) choice = "drop";
            if (choice == "drop") {
                const auto at = all.begin() + static_cast<std::ptrdiff_t>(i);
                all.erase(at, at + 2);
                continue;
            }
            if (choice == "-isystem" && all[i] == "-I") all[i] = choice;
            i += dir ? 2 : 1;
        }
    }

    std::string ours(const char* set) const { return header_places().ours + "/" + set; }

    void later(const char* option, const std::string& dir) {
        last_.emplace_back(option);
        last_.push_back(dir);
    }

    std::vector<std::string> arguments(const std::string& pass) const {
        const bool cuda = language_ == "cuda";
        // The path of a driver that is never run: clang searches libc++ beside it.
        const char* name = language_ == "c" ? "clang" : "clang++";
        const auto driver = fs::path(header_places().resource) / "../../../bin" / name;
        std::vector<std::string> all{driver.lexically_normal().string(),
                                     "--no-default-config",
                                     "-fsyntax-only",
                                     "-resource-dir",
                                     header_places().resource,
                                     "-Wno-everything",
                                     "-ferror-limit=0",
                                     "-fno-spell-checking"};
        if (cuda) all.push_back(pass);
        for (const auto* part : {&first_, &user_.arguments, &last_}) {
            all.insert(all.end(), part->begin(), part->end());
        }
        all.insert(all.end(), {"-x", language_, invocation_.file});
        return all;
    }

    const ExtractOptions& options_;
    CommandNotes notes_;
    Invocation invocation_;
    std::string program_;
    std::string toolkit_version_;  // empty with stubs
    ParseOptions user_;
    std::string language_;
    std::vector<std::string> first_;  // before the command's own options
    std::vector<std::string> last_;   // after them
};

}  // namespace

Invocation make_invocation(const CompileCommand& command, const ExtractOptions& options) {
    Invocation made = Builder(command, options).run();
    ExtractOptions ours = options;
    if (options.cuda == CudaHeaders::automatic && options.cuda_path.empty()) ours.cuda = CudaHeaders::stubs;
    if (options.torch == TorchHeaders::automatic) ours.torch = TorchHeaders::stubs;
    const bool chosen = ours.cuda == options.cuda && ours.torch == options.torch;
    if (!chosen && !made.installed.empty()) made.with_our_headers.push_back(Builder(command, ours).run());
    return made;
}

}  // namespace mp::lint
