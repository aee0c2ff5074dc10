#pragma once

// Properties of called functions: name, op, and whether the call becomes a fact. Computed once per function
// and unit.

#include <memory>

#include "analyzer/clang/decl_names.hpp"

namespace mp::lint::walk {

struct Callee {
    bool user = false;     // defined by the project, not by a system header
    bool kept = false;     // a call to it becomes a fact
    bool library = false;  // from at, c10 or torch: its arguments can name a dtype
    bool in_place = false;
    Symbol usr;
    Symbol name;
    Op op;
    std::vector<TemplateArgument> template_args;
};

class Callees {
public:
    explicit Callees(Usrs& usrs) : usrs_(usrs) {}
    const Callee& of(const clang::FunctionDecl&);

private:
    Usrs& usrs_;
    llvm::DenseMap<const clang::FunctionDecl*, std::unique_ptr<Callee>> known_;
};

// A library class whose lifetime switches a state: c10::impl::ExcludeDispatchKeyGuard, at::NoGradGuard.
bool is_library_guard(const clang::CXXRecordDecl&);

// The destructors with a body that run when an object of this class dies, in order.
std::vector<const clang::CXXDestructorDecl*> destructors_of(const clang::CXXRecordDecl&);

}  // namespace mp::lint::walk
