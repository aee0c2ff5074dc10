#pragma once

// Parses C++ text and hands out its concrete functions, with LocalFlow's answers about them.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/clang/local_flow.hpp"
#include "clang/Frontend/ASTUnit.h"

namespace mp::lint::test {

// Declarations of half types without CUDA: the declarations of the toolkit's headers, without bodies.
extern const char* const kHalfHeader;

class Parsed {
public:
    // `code` after kHalfHeader; ADD_FAILURE when it does not compile.
    explicit Parsed(const std::string& code);

    // Concrete functions in text order, template instantiations included.
    std::vector<const clang::FunctionDecl*> functions(const std::string& name) const;
    const clang::FunctionDecl& function(const std::string& name) const;  // the last of that name

    std::vector<Accumulation> accumulations(const std::string& function) const;
    std::vector<Update> updates(const std::string& function) const;
    std::vector<Scaling> scalings(const std::string& function) const;

    // Stat of the argument of the call `probe(...)` in the function, from LocalFlow.
    Stat stat(const std::string& function, int probe = 0) const;
    bool is_index(const std::string& function, int probe = 0) const;
    std::uint64_t bound(const std::string& function, int probe = 0) const;
    LoopsAround loops(const std::string& function, int probe = 0) const;
    // Role of the first literal with this value in the function.
    Role role(const std::string& function, double literal) const;

    clang::ASTContext& context() const { return unit_->getASTContext(); }

private:
    const clang::Expr* probe(const std::string& function, int which) const;

    std::unique_ptr<clang::ASTUnit> unit_;
};

}  // namespace mp::lint::test
