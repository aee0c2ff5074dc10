#pragma once

// Names of declarations as facts spell them: USRs that join units, qualified names, template
// arguments.

#include <string>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclTemplate.h"
#include "llvm/ADT/DenseMap.h"

namespace mp::lint {

// "at::Tensor::exp_": without template arguments, inline and anonymous namespaces.
std::string qualified_name(const clang::NamedDecl&);

// Of the function, then of the classes it is a member of, innermost first. Packs are flattened.
std::vector<TemplateArgument> template_arguments(const clang::FunctionDecl&);
std::vector<TemplateArgument> template_arguments(const clang::TemplateArgumentList&,
                                                 const clang::ASTContext&);

// "cutlass::half_t", the canonical type as people read it.
std::string type_name(clang::QualType, const clang::ASTContext&);

// The closure class behind a type, when it is one.
const clang::CXXRecordDecl* closure_of(clang::QualType);

bool in_system_header(const clang::Decl&);

// USRs, remembered. Instantiations differ; a function private to a file carries the file's path; a
// lambda is named by the function around it, its place, and which one it is there (a dispatch macro
// repeats its argument, so several lambdas can stand at one place).
class Usrs {
public:
    Symbol of(const clang::FunctionDecl&);
    // Closures and classes alike.
    Symbol of_lambda(const clang::CXXRecordDecl& closure);

private:
    unsigned ordinal(const clang::CXXRecordDecl& closure, const clang::FunctionDecl& around);
    void number_lambdas(const clang::FunctionDecl& around);

    llvm::DenseMap<const clang::FunctionDecl*, Symbol> known_;
    llvm::DenseMap<const clang::CXXRecordDecl*, unsigned> ordinals_;
    llvm::DenseMap<const clang::FunctionDecl*, bool> numbered_;
};

// "layer_norm<__half>"; a lambda is "<function around it>::(lambda)".
std::string display_name(const clang::FunctionDecl&);

}  // namespace mp::lint
