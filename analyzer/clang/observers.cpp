#include "analyzer/clang/observers.hpp"

#include <filesystem>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "clang/Basic/DiagnosticAST.h"
#include "clang/Basic/DiagnosticSema.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/StringExtras.h"

namespace fs = std::filesystem;

namespace mp::lint {
namespace {

constexpr std::size_t kMessages = 5;
constexpr llvm::StringRef kArch = "__CUDA_ARCH__";

// Errors of clang 19 on CUDA code that nvcc accepts. The tree is complete all the same.
bool is_benign(unsigned id) {
    return id == clang::diag::err_alignas_underaligned || id == clang::diag::err_ref_bad_target ||
           id == clang::diag::err_attribute_not_type_attr ||
           id == clang::diag::err_asm_invalid_escape;  // PTX registers: "mov.u32 %0, %laneid;"
}

std::string place_of(const clang::Diagnostic& problem) {
    if (!problem.hasSourceManager() || problem.getLocation().isInvalid()) return {};
    const auto& sources = problem.getSourceManager();
    const auto at = sources.getPresumedLoc(sources.getExpansionLoc(problem.getLocation()), false);
    if (at.isInvalid()) return {};
    return std::string(at.getFilename()) + ":" + std::to_string(at.getLine()) + ":" +
           std::to_string(at.getColumn()) + ": ";
}

bool names_arch(llvm::StringRef text) {
    const auto in_word = [](char c) { return c == '_' || llvm::isAlnum(c); };
    for (auto at = text.find(kArch); at != llvm::StringRef::npos; at = text.find(kArch, at + 1)) {
        const auto end = at + kArch.size();
        if ((at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]))) return true;
    }
    return false;
}

class Observer : public clang::PPCallbacks {
public:
    Observer(clang::Preprocessor& preprocessor, const std::string& root, Preprocessed& out)
        : preprocessor_(preprocessor), sources_(preprocessor.getSourceManager()), root_(root), out_(out) {}

    void InclusionDirective(clang::SourceLocation, const clang::Token&, llvm::StringRef name, bool,
                            clang::CharSourceRange, clang::OptionalFileEntryRef file, llvm::StringRef,
                            llvm::StringRef, const clang::Module*, bool,
                            clang::SrcMgr::CharacteristicKind) override {
        if (!file) out_.missing_headers.insert(name.str());
    }

    void FileChanged(clang::SourceLocation at, FileChangeReason reason,
                     clang::SrcMgr::CharacteristicKind kind, clang::FileID) override {
        if (reason != EnterFile || root_.empty() || kind != clang::SrcMgr::C_User) return;
        const auto id = sources_.getFileID(at);
        const auto file = sources_.getFileEntryRefForID(id);
        if (!file || id == sources_.getMainFileID() || in_project(file->getName().str())) return;
        // The effect of #pragma system_header; a line note applies to the line after it.
        sources_.AddLineNote(at, 2, -1, false, false, clang::SrcMgr::C_System);
    }

    void If(clang::SourceLocation at, clang::SourceRange condition, ConditionValueKind) override {
        look_at(at, condition);
    }
    void Elif(clang::SourceLocation at, clang::SourceRange condition, ConditionValueKind,
              clang::SourceLocation) override {
        look_at(at, condition);
    }
    void Ifdef(clang::SourceLocation at, const clang::Token& name, const clang::MacroDefinition&) override {
        look_at(at, name);
    }
    void Ifndef(clang::SourceLocation at, const clang::Token& name, const clang::MacroDefinition&) override {
        look_at(at, name);
    }
    void Elifdef(clang::SourceLocation at, const clang::Token& name, const clang::MacroDefinition&) override {
        look_at(at, name);
    }
    void Elifndef(clang::SourceLocation at, const clang::Token& name,
                  const clang::MacroDefinition&) override {
        look_at(at, name);
    }
    void Defined(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange range) override {
        look_at(range.getBegin(), name);
    }
    // #define HAS_FP16 (__CUDA_ARCH__ >= 530): a test of HAS_FP16 counts as a test of __CUDA_ARCH__.
    void MacroDefined(const clang::Token& name, const clang::MacroDirective* directive) override {
        const auto* info = directive ? directive->getMacroInfo() : nullptr;
        if (!info) return;
        for (const auto& token : info->tokens()) look_at(name.getLocation(), token);
    }

private:
    bool is_user(clang::SourceLocation at) const { return at.isValid() && !sources_.isInSystemHeader(at); }

    void look_at(clang::SourceLocation at, const clang::Token& name) {
        const auto* identifier = name.getIdentifierInfo();
        if (identifier && identifier->getName() == kArch && is_user(at)) out_.tests_cuda_arch = true;
    }

    void look_at(clang::SourceLocation at, clang::SourceRange condition) {
        if (out_.tests_cuda_arch || !is_user(at)) return;
        const auto text = clang::Lexer::getSourceText(clang::CharSourceRange::getTokenRange(condition),
                                                      sources_, preprocessor_.getLangOpts());
        if (names_arch(text)) out_.tests_cuda_arch = true;
    }

    bool in_project(const std::string& name) const {
        llvm::SmallString<256> full(name);
        sources_.getFileManager().makeAbsolutePath(full);
        std::error_code failed;
        const auto real = fs::weakly_canonical(full.str().str(), failed);
        return failed || real.string().starts_with(root_ + "/");
    }

    clang::Preprocessor& preprocessor_;
    clang::SourceManager& sources_;
    std::string root_;
    Preprocessed& out_;
};

}  // namespace

void Problems::HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& problem) {
    DiagnosticConsumer::HandleDiagnostic(level, problem);
    if (level < clang::DiagnosticsEngine::Error) return;
    const std::string place = place_of(problem);
    const bool benign = is_benign(problem.getID());
    const bool wordy = place.empty() || (!benign && messages_.size() < kMessages);
    llvm::SmallString<256> text;
    if (wordy) problem.FormatDiagnostic(text);
    const auto text_key = place.empty() ? XXH3_64bits(text.data(), text.size()) : 0;
    if (!seen_.insert(XXH3_64bits_withSeed(place.data(), place.size(), problem.getID()) ^ text_key).second)
        return;
    if (benign) {
        ++benign_;
        return;
    }
    ++errors_;
    if (messages_.size() < kMessages) messages_.emplace_back(place + text.str().str());
}

void Problems::add(const std::string& message) {
    ++errors_;
    if (messages_.size() < kMessages) messages_.emplace_back(message);
}

void Problems::report(Coverage& coverage) const {
    coverage.errors = errors_;
    coverage.benign_errors = benign_;
    coverage.messages = messages_;
}

std::unique_ptr<clang::PPCallbacks> observe(clang::Preprocessor& preprocessor,
                                            const std::string& project_root, Preprocessed& out) {
    return std::make_unique<Observer>(preprocessor, project_root, out);
}

}  // namespace mp::lint
