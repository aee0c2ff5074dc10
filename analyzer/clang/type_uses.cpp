#include "analyzer/clang/type_uses.hpp"

#include "analyzer/clang/decl_names.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"

namespace mp::lint::walk {
namespace {

bool fixes_computation(std::string_view name) {
    for (const std::string_view prefix :
         {"nvcuda::wmma::fragment", "cutlass::", "cute::", "cub::Block", "cub::Warp", "cub::Device"})
        if (name.starts_with(prefix)) return true;
    return false;
}

// TempStorage of a cub class is memory, not a computation.
const clang::RecordDecl* computing_record(clang::QualType type) {
    type = type.getNonReferenceType();
    while (!type->getPointeeType().isNull()) type = type->getPointeeType();
    const auto* record = clang::QualType(type->getBaseElementTypeUnsafe(), 0)->getAsRecordDecl();
    return record && record->getIdentifier() && record->getName() != "_TempStorage" &&
                   record->getName() != "TempStorage"
               ? record
               : nullptr;
}

// Aliases that CUTLASS and similar libraries look up in a configuration class.
bool is_configuration(llvm::StringRef alias) {
    return alias.starts_with("Element") || alias.contains("Accumul");
}

// The enumerator that a constant of a compute-type enum names.
const clang::EnumConstantDecl* compute_type(const clang::VarDecl& v) {
    // In C headers the enum itself has no name, only its typedef.
    if (!v.getType()->isEnumeralType() || !v.getType().isConstQualified() ||
        v.getType().getUnqualifiedType().getAsString() != "cublasComputeType_t")
        return nullptr;
    const clang::Expr* init = v.getAnyInitializer();
    if (!init || init->isInstantiationDependent()) return nullptr;
    const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(init->IgnoreParenImpCasts());
    return ref ? llvm::dyn_cast<clang::EnumConstantDecl>(ref->getDecl()) : nullptr;
}

bool add(clang::QualType type, const clang::NamedDecl& at, Symbol alias, Function& out) {
    const clang::RecordDecl* record = computing_record(type);
    if (!record) return false;
    const std::string name = qualified_name(*record);
    if (!fixes_computation(name) || element_type(type).dtype != DType::unknown) return false;
    TypeUse use{.span = span_of(at.getSourceRange(), at.getASTContext()),
                .name = Symbol(name),
                .args = {},
                .alias = alias};
    if (const auto* of = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(record))
        use.args = template_arguments(of->getTemplateArgs(), at.getASTContext());
    out.types.push_back(std::move(use));
    return true;
}

}  // namespace

void add_type_use(const clang::VarDecl& variable, Function& out) {
    add(variable.getType(), variable, {}, out);
}

void add_type_use(const clang::TypedefNameDecl& alias, Function& out) {
    const clang::QualType type = alias.getUnderlyingType();
    if (type->isDependentType() || !alias.getIdentifier()) return;
    const Symbol name(std::string_view(alias.getName()));
    if (add(type, alias, name, out) || !is_configuration(alias.getName())) return;
    const ElementType element = element_type(type);
    if (!is_float(element.dtype)) return;
    const Symbol spelled(type_name(type, alias.getASTContext()));
    out.types.push_back({.span = span_of(alias.getSourceRange(), alias.getASTContext()),
                         .name = spelled,
                         .args = {{spelled, element.dtype, element.shape}},
                         .alias = name});
}

void add_outside_use(const clang::Decl& d, Function& out) {
    if (const auto* alias = llvm::dyn_cast<clang::TypedefNameDecl>(&d)) return add_type_use(*alias, out);
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&d);
    const clang::EnumConstantDecl* chosen = variable ? compute_type(*variable) : nullptr;
    if (!chosen) return;
    out.types.push_back({.span = span_of(variable->getSourceRange(), variable->getASTContext()),
                         .name = Symbol("cublasComputeType_t"),
                         .args = {{Symbol(std::string_view(chosen->getName()))}},
                         .alias = Symbol(variable->getQualifiedNameAsString())});
}

}  // namespace mp::lint::walk
