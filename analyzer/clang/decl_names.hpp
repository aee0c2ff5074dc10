#pragma once

// Names of declarations in the form that facts use: USRs that link units, qualified names, template
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

// Template arguments of the function, then of its enclosing classes, innermost first. Packs are flattened.
std::vector<TemplateArgument> template_arguments(const clang::FunctionDecl&);
std::vector<TemplateArgument> template_arguments(const clang::TemplateArgumentList&,
                                                 const clang::ASTContext&);

// "cutlass::half_t": the canonical type in readable form.
std::string type_name(clang::QualType, const clang::ASTContext&);

// The closure class behind a type; null when the type is not a closure.
const clang::CXXRecordDecl* closure_of(clang::QualType);

bool in_system_header(const clang::Decl&);

// USRs, memoised. Instantiations differ. The USR of a function private to a file contains the file's path.
// A lambda is identified by its enclosing function and its number in the body. An edit that only moves lines does not
// change that number. Outside of bodies a lambda is identified by its place.
class Usrs {
public:
    Symbol of(const clang::FunctionDecl&);
    // For closures and for other classes.
    Symbol of_lambda(const clang::CXXRecordDecl& closure);

private:
    void number_lambdas(const clang::FunctionDecl& around);

    llvm::DenseMap<const clang::FunctionDecl*, Symbol> known_;
    llvm::DenseMap<const clang::CXXRecordDecl*, unsigned> ordinals_;
    llvm::DenseMap<const clang::FunctionDecl*, bool> numbered_;
};

// "layer_norm<__half>"; for a lambda "<enclosing function>::(lambda)".
std::string display_name(const clang::FunctionDecl&);

}  // namespace mp::lint
