#include "analyzer/clang/extract.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "clang/AST/ASTConsumer.h"
#include "clang/Basic/Stack.h"
#include "clang/Basic/Version.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Frontend/Utils.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/thread.h"

#include "analyzer/clang/command_line.hpp"
#include "analyzer/clang/guarded_files.hpp"
#include "analyzer/clang/headers.hpp"
#include "analyzer/clang/merge.hpp"
#include "analyzer/clang/observers.hpp"
#include "analyzer/clang/visitor.hpp"
#include "kernels/base/paths.hpp"

namespace fs = std::filesystem;

namespace mp::lint {
namespace {

// clang, and every visitor of the tree, recurses on deeply nested expressions.
constexpr unsigned kStackBytes = 128u << 20;

struct Pass {
    const std::vector<std::string>& arguments;
    const std::string& directory;
    bool exact = false;
    std::string project_root;
    llvm::IntrusiveRefCntPtr<GuardedFiles> files;
    Problems& problems;
    Preprocessed& preprocessed;
    Unit& out;
    bool reached_the_tree = false;
};

class Consumer : public clang::ASTConsumer {
public:
    explicit Consumer(Pass& pass) : pass_(pass) {}

    void Initialize(clang::ASTContext& context) override { sources_ = &context.getSourceManager(); }

    // Nothing in a system header is reported, and its bodies take half the time of a parse. clang still
    // parses constexpr functions and those with deduced results.
    bool shouldSkipFunctionBody(clang::Decl* function) override {
        return sources_->isInSystemHeader(sources_->getExpansionLoc(function->getLocation()));
    }

    void HandleTranslationUnit(clang::ASTContext& context) override {
        pass_.reached_the_tree = true;
        visit_unit(context, pass_.out);
    }

private:
    Pass& pass_;
    const clang::SourceManager* sources_ = nullptr;
};

class Action : public clang::ASTFrontendAction {
public:
    explicit Action(Pass& pass) : pass_(pass) {}

    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                          llvm::StringRef) override {
        auto& preprocessor = compiler.getPreprocessor();
        preprocessor.SetSuppressIncludeNotFoundError(true);
        preprocessor.addPPCallbacks(observe(preprocessor, pass_.project_root, pass_.preprocessed));
        return std::make_unique<Consumer>(pass_);
    }

private:
    Pass& pass_;
};

// Makes sure that this parse writes nothing and loads nothing, for every command line.
void make_harmless(clang::CompilerInvocation& invocation) {
    auto& frontend = invocation.getFrontendOpts();
    frontend.ProgramAction = clang::frontend::ParseSyntaxOnly;
    frontend.DisableFree = false;
    frontend.ShowStats = false;
    frontend.OutputFile.clear();
    frontend.Plugins.clear();
    frontend.AddPluginActions.clear();
    frontend.PluginArgs.clear();
    frontend.LLVMArgs.clear();
    frontend.ModuleFiles.clear();
    frontend.StatsFile.clear();
    frontend.TimeTracePath.clear();
    invocation.getDependencyOutputOpts() = {};
    auto& preprocessor = invocation.getPreprocessorOpts();
    preprocessor.ImplicitPCHInclude.clear();
    preprocessor.ChainedIncludes.clear();
    auto& diagnostics = invocation.getDiagnosticOpts();
    diagnostics.DiagnosticLogFile.clear();
    diagnostics.DiagnosticSerializationFile.clear();
    diagnostics.ShowCarets = false;  // also no "3 errors generated."
}

std::shared_ptr<clang::CompilerInvocation> parse_arguments(const Pass& pass) {
    std::vector<const char*> raw;
    for (const auto& argument : pass.arguments) raw.push_back(argument.c_str());
    const auto diagnostics = clang::CompilerInstance::createDiagnostics(
        new clang::DiagnosticOptions, &pass.problems, /*ShouldOwnClient=*/false);
    clang::CreateInvocationOptions options;
    options.Diags = diagnostics;
    // A separate view of the disk: files that the driver reads about the distribution are not dependencies.
    options.VFS = new GuardedFiles(pass.directory);
    options.RecoverOnError = true;
    return clang::createInvocation(raw, options);
}

void run(Pass& pass) {
    auto invocation = parse_arguments(pass);
    if (!invocation) return pass.problems.add("the command line cannot be understood");
    make_harmless(*invocation);
    invocation->getFrontendOpts().SkipFunctionBodies = !pass.exact;

    clang::CompilerInstance compiler;
    compiler.setInvocation(std::move(invocation));
    compiler.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
    compiler.createDiagnostics(&pass.problems, /*ShouldOwnClient=*/false);
    // A missing brace in one header must not stop the parse of the rest.
    compiler.getDiagnostics().setFatalsAsError(true);
    compiler.createFileManager(pass.files);
    compiler.createSourceManager(compiler.getFileManager());
    Action action(pass);
    compiler.ExecuteAction(action);
}

void run_on_big_stack(Pass& pass) {
    llvm::thread worker(std::optional<unsigned>(kStackBytes), [&pass] {
        clang::noteBottomOfStack();
        run(pass);
    });
    worker.join();
}

// Gives the same file the same name in every unit: absolute, without "..".
class PathNames {
public:
    explicit PathNames(const std::string& directory) : directory_(directory) {}

    void apply(SourceSpan& span) {
        if (span.file.empty()) return;
        auto [at, is_new] = names_.try_emplace(span.file);
        if (is_new) at->second = Symbol(absolute_file(std::string(span.file.str()), directory_));
        span.file = at->second;
    }

    void apply(Function& f) {
        apply(f.span);
        apply(f.instantiated);
        for (auto& call : f.calls) apply(call.span);
        for (auto& cast : f.casts) apply(cast.span);
        for (auto& update : f.updates) apply(update.span);
        for (auto& scaling : f.scalings) apply(scaling.span);
        for (auto& type : f.types) apply(type.span);
        for (auto& block : f.flow) apply(block.span);
        for (auto& accumulation : f.accumulations) {
            apply(accumulation.span);
            apply(accumulation.declared);
            apply(accumulation.through_span);
        }
    }

private:
    const std::string& directory_;
    std::unordered_map<Symbol, Symbol> names_;
};

std::string device_pass_name(const Invocation& invocation) {
    constexpr std::string_view option = "--cuda-gpu-arch=";
    for (const auto& argument : invocation.device) {
        if (argument.starts_with(option)) return "device " + argument.substr(option.size());
    }
    return "device";
}

bool uses_our(const char* set, const Invocation& invocation) {
    const auto& all = invocation.host;
    return std::find(all.begin(), all.end(), header_places().ours + "/" + set) != all.end();
}

bool read_installed_headers(const Unit& unit, const std::vector<std::string>& installed) {
    return std::ranges::any_of(unit.dependencies, [&](const Dependency& d) {
        return std::ranges::any_of(installed,
                                   [&](const std::string& dir) { return d.path.str().starts_with(dir); });
    });
}

bool is_one_of_ours(Symbol header) {
    return std::ranges::any_of(std::array{"cuda", "torch", "other"}, [&](const char* set) {
        return fs::exists(header_places().ours + "/" + set + "/" + std::string(header.str()));
    });
}

// Whether our headers may parse where the installed ones do not.
bool may_need_ours(const Unit& unit, const std::vector<std::string>& installed) {
    const bool has_toolkit = unit.headers.str().starts_with("toolkit");
    return unit.state != UnitState::ok &&
           (has_toolkit || read_installed_headers(unit, installed) ||
            std::ranges::any_of(unit.coverage.missing_headers, is_one_of_ours));
}

std::size_t faults(const Unit& unit) {
    return unit.coverage.errors + unit.coverage.missing_headers.size() + unit.coverage.unresolved;
}

void add_dependencies(Unit& unit, const Unit& other) {
    auto& all = unit.dependencies;
    all.insert(all.end(), other.dependencies.begin(), other.dependencies.end());
    std::ranges::sort(all, {}, [](const Dependency& d) { return d.path.str(); });
    all.erase(std::unique(all.begin(), all.end()), all.end());
}

std::string canonical_root(const std::string& root) {
    if (root.empty()) return {};
    std::error_code failed;
    const auto real = fs::weakly_canonical(root, failed);
    std::string text = failed ? root : real.string();
    while (text.size() > 1 && text.back() == '/') text.pop_back();
    return text == "/" ? "" : text;  // every path is below "/"
}

// The reason why the main file cannot be read; empty when it can.
std::string refusal(const std::string& file) {
    std::error_code failed;
    const auto status = fs::status(file, failed);
    if (failed || !fs::exists(status)) return file + ": no such file";
    if (!fs::is_regular_file(status)) return file + ": not a regular file";
    if (fs::file_size(file, failed) > kMaxSourceBytes) return file + ": larger than 64 MiB";
    if (header_places().resource.empty()) return resource_hint();
    return {};
}

UnitState state_of(const Unit& unit, bool reached_the_tree) {
    const auto& coverage = unit.coverage;
    const bool clean = coverage.errors == 0 && coverage.missing_headers.empty();
    if (!reached_the_tree || (coverage.errors > 0 && unit.functions.empty())) return UnitState::failed;
    return clean ? UnitState::ok : UnitState::partial;
}

class Extraction {
public:
    Extraction(const Invocation& invocation, const ExtractOptions& options)
        : invocation_(invocation),
          options_(options),
          names_(invocation_.directory),
          files_(new GuardedFiles(invocation.directory)) {
        unit_.path = Symbol(invocation.file);
        unit_.language = invocation.language;
        unit_.headers = Symbol(invocation.headers);
        if (uses_our("cuda", invocation)) files_->hide(GuardedFiles::Headers::cuda);
        if (uses_our("torch", invocation)) files_->hide(GuardedFiles::Headers::torch);
        for (const auto& flag : invocation.flags) unit_.flags.emplace_back(flag);
    }

    Unit run() {
        if (const auto why = refusal(invocation_.file); !why.empty()) {
            problems_.add(why);
        } else {
            host_pass();
            if (reached_the_tree_ && !invocation_.device.empty() && preprocessed_.tests_cuda_arch)
                device_pass();
        }
        for (const auto& header : preprocessed_.missing_headers)
            unit_.coverage.missing_headers.emplace_back(header);
        problems_.report(unit_.coverage);
        unit_.dependencies = files_->read_files();
        unit_.state = state_of(unit_, reached_the_tree_);
        return std::move(unit_);
    }

private:
    void host_pass() {
        reached_the_tree_ = pass(invocation_.host, unit_);
        unit_.passes.emplace_back("host");
    }

    void device_pass() {
        Unit device;
        pass(invocation_.device, device);
        unit_.passes.emplace_back(device_pass_name(invocation_));
        merge_device_pass(unit_, std::move(device));
    }

    bool pass(const std::vector<std::string>& arguments, Unit& out) {
        Pass one{.arguments = arguments,
                 .directory = invocation_.directory,
                 .exact = options_.exact,
                 .project_root = canonical_root(options_.project_root),
                 .files = files_,
                 .problems = problems_,
                 .preprocessed = preprocessed_,
                 .out = out};
        run_on_big_stack(one);
        for (auto& function : out.functions) names_.apply(function);
        return one.reached_the_tree;
    }

    const Invocation& invocation_;
    const ExtractOptions& options_;
    PathNames names_;
    llvm::IntrusiveRefCntPtr<GuardedFiles> files_;
    Problems problems_;
    Preprocessed preprocessed_;
    Unit unit_;
    bool reached_the_tree_ = false;
};

Unit with_best_headers(const Invocation& invocation, const ExtractOptions& options) {
    Unit unit = Extraction(invocation, options).run();
    if (invocation.with_our_headers.empty() || !may_need_ours(unit, invocation.installed)) return unit;
    Unit ours = Extraction(invocation.with_our_headers.front(), options).run();
    // Equally good: ours, so that the findings do not depend on what a machine has installed.
    const bool worse = ours.state > unit.state || (ours.state == unit.state && faults(ours) > faults(unit));
    add_dependencies(worse ? unit : ours, worse ? ours : unit);
    if (worse) return unit;
    if (unit.headers != ours.headers) ours.headers = Symbol("stubs instead of " + invocation.headers);
    return ours;
}

bool removes_half_operators(std::string_view macro) {
    return macro.starts_with("__CUDA_NO_HALF") || macro.starts_with("__CUDA_NO_BFLOAT16");
}

// The arguments without those macros, in one word or two: -DX, -D X.
std::vector<std::string> with_half_operators(const std::vector<std::string>& arguments) {
    std::vector<std::string> kept;
    for (const std::string& argument : arguments) {
        const bool follows = !kept.empty() && kept.back() == "-D";
        const std::string_view text = argument;
        const bool removes = removes_half_operators(follows                  ? text
                                                    : text.starts_with("-D") ? text.substr(2)
                                                                             : std::string_view());
        if (removes && follows) kept.pop_back();
        if (!removes) kept.push_back(argument);
    }
    return kept;
}

// The same unit with the operators of CUDA's half types: many extensions are built with -U for the macros of torch that
// remove them, and the flag stands in a setup.py or in a call of load(). nullopt when nothing removes them.
std::optional<Invocation> with_half_operators(const Invocation& invocation) {
    Invocation changed = invocation;
    changed.host = with_half_operators(invocation.host);
    if (changed.host == invocation.host) return std::nullopt;
    changed.device = with_half_operators(invocation.device);
    for (Invocation& other : changed.with_our_headers) {
        other.host = with_half_operators(other.host);
        other.device = with_half_operators(other.device);
    }
    return changed;
}

}  // namespace

Unit extract(const Invocation& invocation, const ExtractOptions& options) {
    Unit unit = with_best_headers(invocation, options);
    if (unit.coverage.errors == 0) return unit;
    const auto with_operators = with_half_operators(invocation);
    if (!with_operators) return unit;
    Unit other = with_best_headers(*with_operators, options);
    const bool better = other.coverage.errors < unit.coverage.errors;
    add_dependencies(better ? other : unit, better ? unit : other);
    return better ? other : unit;
}

std::string extractor_version() {
    return clang::getClangFullVersion() + ", headers " + our_headers_hash() + ", facts " +
           std::to_string(kFactsVersion);
}

}  // namespace mp::lint
