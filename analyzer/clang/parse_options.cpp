#include "analyzer/clang/parse_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "clang/Driver/Options.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Option/OptTable.h"

#include "analyzer/clang/nvcc.hpp"
#include "kernels/base/paths.hpp"

namespace options = clang::driver::options;
using llvm::opt::Arg;
using std::string_view;

namespace mp::lint {
namespace {

template <std::size_t N>
bool contains(const std::array<string_view, N>& names, string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// By clang's full spelling: the options that decide how source text is read (macros, search paths,
// language).
// clang-format off: a table
constexpr auto kKept = std::to_array<string_view>({
    "-D", "-U", "-undef", "-std=", "--std=", "-ansi", "-stdlib=", "-nostdinc", "-nostdinc++", "-nostdlibinc",
    "--sysroot=", "-isysroot", "--target=", "--gcc-toolchain=", "--gcc-install-dir=", "-pthread", "-iprefix",
    "-iwithprefix", "-iwithprefixbefore", "-iwithsysroot", "-imacros", "-march=", "-mcpu=", "-m64", "-m32",
    "-mlong-double-64", "-mlong-double-80", "-mlong-double-128",
    "-fexceptions", "-fno-exceptions", "-fcxx-exceptions", "-fno-cxx-exceptions", "-frtti", "-fno-rtti",
    "-fsigned-char", "-fno-signed-char", "-funsigned-char", "-fno-unsigned-char", "-fshort-enums",
    "-fno-short-enums", "-fshort-wchar", "-fno-short-wchar", "-fopenmp", "-fno-openmp", "-fopenmp=",
    "-fopenmp-simd", "-fopenmp-version=", "-fms-extensions", "-fms-compatibility", "-fms-compatibility-version=",
    "-fgnu-keywords", "-fno-gnu-keywords", "-fgnu89-inline", "-fchar8_t", "-fno-char8_t", "-fcoroutines",
    "-fsized-deallocation", "-fno-sized-deallocation", "-faligned-allocation", "-fno-aligned-allocation",
    "-faligned-new=", "-fnew-alignment=", "-fdelayed-template-parsing", "-fno-delayed-template-parsing",
    "-frelaxed-template-template-args", "-fno-relaxed-template-template-args", "-ffreestanding", "-fhosted",
    "-fbuiltin", "-fno-builtin", "-fblocks", "-fdeclspec", "-foperator-names", "-fno-operator-names",
    "-fdollars-in-identifiers", "-fno-dollars-in-identifiers", "-ftrigraphs", "-fno-trigraphs", "-fwrapv",
    "-flax-vector-conversions", "-flax-vector-conversions=", "-fpack-struct", "-fpack-struct=", "-fms-volatile",
    "-fPIC", "-fpic", "-fPIE", "-fpie", "-fno-pic", "-fno-PIC", "-faltivec", "-fnative-half-type",
    "-fraw-string-literals", "-ftemplate-depth=", "-fconstexpr-depth=", "-fconstexpr-steps=", "-fbracket-depth=",
});
// clang-format on

// Options that let the code generator change arithmetic. They are not applied, but recorded for the rules.
// clang-format off: a table
constexpr auto kNumerics = std::to_array<string_view>({
    "-ffast-math", "-ffinite-math-only", "-funsafe-math-optimizations", "-fassociative-math",
    "-freciprocal-math", "-fgpu-flush-denormals-to-zero", "-fno-honor-nans", "-fno-honor-infinities",
    "-fapprox-func", "-ffp-contract=", "-ffp-model=", "-fdenormal-fp-math=", "-fgpu-approx-transcendentals",
});
// clang-format on

// Options that load or run code, write files, or replace the files that are read.
// clang-format off: a table
constexpr auto kDangerous = std::to_array<string_view>({
    "-fplugin=", "-fpass-plugin=", "-mllvm", "--config=", "-B", "-save-temps", "-save-temps=", "-ftime-trace",
    "-ftime-trace=", "-serialize-diagnostics", "-fmodules", "-fcxx-modules", "-fmodules-cache-path=",
    "-fmodule-file=", "-fmodule-map-file=", "-fprebuilt-module-path=", "-ivfsoverlay", "-include-pch",
    "-fcrash-diagnostics-dir=", "-fsave-optimization-record", "-foptimization-record-file=",
    "-fdiagnostics-log-file=", "-resource-dir", "-ccc-install-dir", "-Xassembler", "-Xanalyzer",
    "-emit-ast", "-emit-llvm", "--analyze", "-index-store-path", "-dependency-dot", "-MJ", "-Xarch_host",
    "-Xarch_device", "-Xarch_", "-Xcuda-fatbinary", "-Xcuda-ptxas", "-Xopenmp-target", "-gen-reproducer",
    "-gen-reproducer=", "-fsanitize-ignorelist=", "-fprofile-instr-use=", "-fprofile-use=",
    "-fprofile-list=", "-extract-api-ignores=", "--precompile", "-rewrite-objc",
});
// clang-format on

constexpr auto kIncludeDirs = std::to_array<string_view>(
    {"-I", "-isystem", "-iquote", "-idirafter", "-cxx-isystem", "-isystem-after", "-F"});

// Higher recursion limits could exhaust the stack; real projects stay below these.
std::uint64_t limit_of(string_view name) {
    if (name == "-ftemplate-depth=" || name == "-fconstexpr-depth=") return 2048;
    if (name == "-fbracket-depth=") return 1024;
    if (name == "-fconstexpr-steps=") return 16'777'216;
    return 0;
}

class Filter {
public:
    Filter(const std::string& directory, CommandNotes& notes) : directory_(directory), notes_(notes) {}

    void run(const std::vector<std::string>& arguments) {
        std::vector<const char*> raw;
        raw.reserve(arguments.size());
        for (const auto& argument : arguments) raw.push_back(argument.c_str());
        unsigned missing_index = 0;
        unsigned missing_count = 0;
        const auto parsed = clang::driver::getDriverOptTable().ParseArgs(
            raw, missing_index, missing_count, llvm::opt::Visibility(options::ClangOption));
        if (missing_count) notes_.warn(arguments[missing_index] + ": its value is missing; dropped");
        for (const Arg* arg : parsed) one(*arg, parsed);
        frontend_options();
    }

    ParseOptions out;

private:
    void one(const Arg& arg, const llvm::opt::ArgList& all) {
        const auto option = arg.getOption().getUnaliasedOption();
        const auto name = option.getPrefixedName();
        const string_view key(name.data(), name.size());
        if (option.matches(options::OPT_INPUT)) return;
        if (option.matches(options::OPT_UNKNOWN)) {
            return notes_.warn(std::string(arg.getSpelling()) + ": not known to clang; dropped");
        }
        if (contains(kIncludeDirs, key)) return include_dir(key, arg.getValue());
        if (key == "-include") return source_file("-include", arg.getValue());
        if (key == "-x") return language(arg.getValue());
        if (key == "-Xclang") return frontend_.push_back(arg.getValue());
        if (key == "-Wp," || key == "-Xpreprocessor") return preprocessor(arg);
        if (key == "--offload-arch=" || key == "--cuda-gpu-arch=")
            return note_architectures(arg.getValue(), notes_);
        if (contains(kNumerics, key)) return numerics(arg, all);
        if (contains(kDangerous, key)) return dropped(arg, all);
        if (key == "-D") note_macro(arg.getValue());
        if (limit_of(key)) return limited(key, arg.getValue());
        if (contains(kKept, key) || is_target_feature(arg) || arg.getOption().matches(options::OPT_O_Group)) {
            render(arg, all);
        }
        // All other options control code generation, warnings, output or the linker.
    }

    static bool is_target_feature(const Arg& arg) {
        return arg.getOption().matches(options::OPT_m_x86_Features_Group) ||
               arg.getOption().matches(options::OPT_m_aarch64_Features_Group);
    }

    void render(const Arg& arg, const llvm::opt::ArgList& all) {
        llvm::opt::ArgStringList words;
        arg.render(all, words);
        out.arguments.insert(out.arguments.end(), words.begin(), words.end());
    }

    void numerics(const Arg& arg, const llvm::opt::ArgList& all) {
        notes_.flags.push_back(arg.getAsString(all));
    }

    void dropped(const Arg& arg, const llvm::opt::ArgList& all) {
        notes_.warn(arg.getAsString(all) + ": dropped, it loads or writes something besides the source");
    }

    void include_dir(string_view key, const std::string& value) {
        // "=dir" is below the sysroot, which only clang can resolve.
        const auto dir = value.starts_with("=") ? value : absolute_file(value, directory_);
        out.arguments.emplace_back(key);
        out.arguments.push_back(dir);
        out.include_dirs.push_back(dir);
    }

    void source_file(const std::string& key, const std::string& value) {
        out.arguments.push_back(key);
        out.arguments.push_back(value);
    }

    void language(string_view value) {
        if (value == "cu") value = "cuda";
        if (value == "c++-header") value = "c++";
        if (value == "c-header") value = "c";
        if (value == "c" || value == "c++" || value == "cuda") {
            out.language = value;
        } else if (value != "none") {
            notes_.warn("-x " + std::string(value) + ": not a language mp-lint reads; dropped");
        }
    }

    void limited(string_view key, const std::string& value) {
        const auto limit = limit_of(key);
        const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
        if (!number) return notes_.warn(std::string(key) + value + ": not a number; dropped");
        const bool above = value.size() > 9 || std::stoull(value) > limit;
        if (above) notes_.warn(std::string(key) + value + ": lowered to " + std::to_string(limit));
        out.arguments.push_back(std::string(key) + (above ? std::to_string(limit) : value));
    }

    void note_macro(const std::string& definition) {
        const auto name = definition.substr(0, definition.find('='));
        if (name.find("TF32") != std::string::npos) notes_.flags.push_back("-D" + definition);
    }

    // -Wp,-DX,-MD,file: only macros and search paths are used.
    void preprocessor(const Arg& arg) {
        for (const string_view value : arg.getValues()) {
            if (value.size() < 3) continue;
            if (value.starts_with("-D") || value.starts_with("-U")) out.arguments.emplace_back(value);
            if (value.starts_with("-I")) include_dir("-I", std::string(value.substr(2)));
        }
    }

    // -Xclang values are arguments of cc1. Only one form is used: CMake's precompiled headers name the text
    // header with -include beside the binary header.
    void frontend_options() {
        for (std::size_t i = 0; i < frontend_.size(); ++i) {
            const auto& word = frontend_[i];
            const bool has_next = i + 1 < frontend_.size();
            if (word == "-include" && has_next) {
                source_file("-include", frontend_[++i]);
            } else if (word == "-include-pch" && has_next) {
                ++i;
            } else {
                notes_.warn("-Xclang " + word + ": dropped");
            }
        }
    }

    const std::string& directory_;
    CommandNotes& notes_;
    std::vector<std::string> frontend_;
};

}  // namespace

ParseOptions parse_options(const std::vector<std::string>& arguments, const std::string& directory,
                           CommandNotes& notes) {
    Filter filter(directory, notes);
    filter.run(arguments);
    return std::move(filter.out);
}

}  // namespace mp::lint
