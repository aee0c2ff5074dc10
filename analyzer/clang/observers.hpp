#pragma once

// Results of a parse beside its tree: errors, missing headers, tests of __CUDA_ARCH__.

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>

#include "analyzer/facts/model.hpp"
#include "clang/Basic/Diagnostic.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"

namespace mp::lint {

// Counts errors over all passes of a unit. An error in both passes counts once.
class Problems : public clang::DiagnosticConsumer {
public:
    void HandleDiagnostic(clang::DiagnosticsEngine::Level, const clang::Diagnostic&) override;
    void add(const std::string& message);  // adds an error of our own

    void report(Coverage&) const;

private:
    std::unordered_set<std::uint64_t> seen_;
    std::uint32_t errors_ = 0;
    std::uint32_t benign_ = 0;
    std::vector<Symbol> messages_;
};

struct Preprocessed {
    std::set<std::string> missing_headers;
    bool tests_cuda_arch = false;  // user code tests __CUDA_ARCH__
};

// `project_root` is canonical or empty. Headers outside it become system headers, so that their bodies are
// skipped and nothing in them is reported.
std::unique_ptr<clang::PPCallbacks> observe(clang::Preprocessor&, const std::string& project_root,
                                            Preprocessed&);

}  // namespace mp::lint
