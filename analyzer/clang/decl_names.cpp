#include "analyzer/clang/decl_names.hpp"

#include "analyzer/clang/types.hpp"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/ExprCXX.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Index/USRGeneration.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace mp::lint {
namespace {

constexpr const char* kLambda = "(lambda)";

clang::PrintingPolicy policy_of(const clang::ASTContext& context) {
    clang::PrintingPolicy policy(context.getLangOpts());
    policy.SuppressTagKeyword = true;
    policy.SuppressUnwrittenScope = true;
    policy.SuppressInlineNamespace = true;
    policy.AnonymousTagLocations = false;  // names must not contain paths of this machine
    policy.FullyQualifiedName = true;
    policy.PrintCanonicalTypes = true;
    policy.Bool = true;
    return policy;
}

std::string simple_name(const clang::NamedDecl& decl) {
    if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&decl); record && record->isLambda())
        return kLambda;
    // clang's names of constructors and destructors of class templates contain the template arguments.
    if (llvm::isa<clang::CXXConstructorDecl>(decl) || llvm::isa<clang::CXXDestructorDecl>(decl)) {
        const auto* parent = llvm::cast<clang::CXXMethodDecl>(decl).getParent();
        return (llvm::isa<clang::CXXDestructorDecl>(decl) ? "~" : "") + parent->getName().str();
    }
    return decl.getDeclName().getAsString();
}

bool is_skipped_scope(const clang::DeclContext& scope) {
    if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(&scope))
        return space->isInline() || space->isAnonymousNamespace();
    return !llvm::isa<clang::NamedDecl>(&scope);
}

// The call operator of a lambda is shown as the lambda.
bool is_call_operator(const clang::NamedDecl& decl) {
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&decl);
    return method && method->getParent()->isLambda();
}

TemplateArgument integral(const clang::TemplateArgument& argument) {
    const clang::QualType type = argument.getIntegralType();
    TemplateArgument fact{.text = {}, .dtype = element_type(type).dtype, .shape = Shape::other};
    if (const auto* e = type->getAs<clang::EnumType>())
        for (const auto* enumerator : e->getDecl()->enumerators())
            if (llvm::APSInt::isSameValue(enumerator->getInitVal(), argument.getAsIntegral())) {
                fact.text = Symbol(qualified_name(*enumerator));
                return fact;
            }
    if (type->isBooleanType())
        fact.text = Symbol(argument.getAsIntegral().getBoolValue() ? "true" : "false");
    else
        fact.text = Symbol(llvm::toString(argument.getAsIntegral(), 10));
    return fact;
}

void append(const clang::TemplateArgument& argument, const clang::ASTContext& context,
            std::vector<TemplateArgument>& out) {
    switch (argument.getKind()) {
        case clang::TemplateArgument::Pack:
            for (const auto& element : argument.pack_elements()) append(element, context, out);
            return;
        case clang::TemplateArgument::Type: {
            const ElementType type = element_type(argument.getAsType());
            out.push_back({Symbol(type_name(argument.getAsType(), context)), type.dtype, type.shape});
            return;
        }
        case clang::TemplateArgument::Integral:
            out.push_back(integral(argument));
            return;
        default: {
            std::string text;
            llvm::raw_string_ostream stream(text);
            argument.print(policy_of(context), stream, /*IncludeType=*/false);
            out.push_back({Symbol(stream.str()), DType::unknown, Shape::other});
        }
    }
}

void find_lambdas(const clang::Stmt* statement, llvm::SmallVectorImpl<const clang::LambdaExpr*>& out) {
    if (!statement) return;
    if (const auto* lambda = llvm::dyn_cast<clang::LambdaExpr>(statement)) {
        out.push_back(lambda);
        for (const clang::Expr* init : lambda->capture_inits()) find_lambdas(init, out);
        return;
    }
    for (const clang::Stmt* child : statement->children()) find_lambdas(child, out);
}

std::string place(clang::SourceLocation location, const clang::ASTContext& context, bool with_file) {
    const SourceSpan span = span_of(location, context);
    return (with_file ? std::string(span.file.str()) + ":" : std::string()) + std::to_string(span.line) +
           ":" + std::to_string(span.column);
}

}  // namespace

std::string qualified_name(const clang::NamedDecl& decl) {
    llvm::SmallVector<std::string, 6> parts;
    const clang::NamedDecl* first = &decl;
    if (is_call_operator(decl)) first = llvm::cast<clang::CXXMethodDecl>(decl).getParent();
    parts.push_back(simple_name(*first));
    // Unscoped enumerators are members of the scope that contains their enum.
    const clang::DeclContext* scope = first->getDeclContext();
    for (; scope && !scope->isTranslationUnit(); scope = scope->getParent()) {
        if (is_skipped_scope(*scope)) continue;
        if (const auto* e = llvm::dyn_cast<clang::EnumDecl>(scope); e && !e->isScoped()) continue;
        const auto& named = llvm::cast<clang::NamedDecl>(*clang::Decl::castFromDeclContext(scope));
        if (is_call_operator(named)) continue;
        parts.push_back(simple_name(named));
    }
    std::string name;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (!name.empty()) name += "::";
        name += *part;
    }
    return name;
}

std::vector<TemplateArgument> template_arguments(const clang::TemplateArgumentList& list,
                                                 const clang::ASTContext& context) {
    std::vector<TemplateArgument> out;
    for (const auto& argument : list.asArray()) append(argument, context, out);
    return out;
}

std::vector<TemplateArgument> template_arguments(const clang::FunctionDecl& function) {
    const clang::ASTContext& context = function.getASTContext();
    std::vector<TemplateArgument> out;
    if (const auto* own = function.getTemplateSpecializationArgs())
        for (const auto& argument : own->asArray()) append(argument, context, out);
    const clang::DeclContext* scope = function.getDeclContext();
    for (; scope && !scope->isFileContext(); scope = scope->getParent())
        if (const auto* of_class = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(scope))
            for (const auto& argument : of_class->getTemplateArgs().asArray()) append(argument, context, out);
    return out;
}

std::string type_name(clang::QualType type, const clang::ASTContext& context) {
    if (closure_of(type)) return kLambda;
    return type.getCanonicalType().getAsString(policy_of(context));
}

const clang::CXXRecordDecl* closure_of(clang::QualType type) {
    if (type.isNull()) return nullptr;
    const auto* record = type.getNonReferenceType()->getAsCXXRecordDecl();
    return record && record->isLambda() ? record : nullptr;
}

bool in_system_header(const clang::Decl& decl) {
    const auto& sources = decl.getASTContext().getSourceManager();
    const clang::SourceLocation location = decl.getLocation();
    return location.isInvalid() || sources.isInSystemHeader(sources.getExpansionLoc(location));
}

Symbol Usrs::of(const clang::FunctionDecl& function) {
    const clang::FunctionDecl* key = function.getCanonicalDecl();
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(key);
    Symbol usr;
    if (method && method->getParent()->isLambda()) {
        std::string text(of_lambda(*method->getParent()).str());
        for (const auto& argument : template_arguments(*method))
            text += "<" + std::string(argument.text.str()) + ">";
        usr = Symbol(text);
    } else {
        llvm::SmallString<256> text;
        clang::index::generateUSRForDecl(key, text);
        // A USR contains only the file's name. Without the path, private functions of two files util.cpp
        // would share a USR.
        if (!key->isExternallyVisible())
            text += std::string("@") + span_of(key->getLocation(), key->getASTContext()).file;
        usr = Symbol(text.str());
    }
    known_[key] = usr;
    return usr;
}

Symbol Usrs::of_lambda(const clang::CXXRecordDecl& closure) {
    const clang::ASTContext& context = closure.getASTContext();
    const clang::DeclContext* scope = closure.getDeclContext();
    while (scope && !scope->isFunctionOrMethod() && !scope->isFileContext()) scope = scope->getParent();
    const auto* around = llvm::dyn_cast_or_null<clang::FunctionDecl>(scope);
    if (!around) return Symbol("c:@lambda@" + place(closure.getLocation(), context, true));
    if (!numbered_.contains(around)) number_lambdas(*around);
    const auto found = ordinals_.find(&closure);
    const std::string which = found == ordinals_.end() ? place(closure.getLocation(), context, false)
                                                       : std::to_string(found->second);
    return Symbol(std::string(of(*around).str()) + "@lambda@" + which);
}

void Usrs::number_lambdas(const clang::FunctionDecl& around) {
    numbered_[&around] = true;
    const clang::FunctionDecl* definition = nullptr;
    llvm::SmallVector<const clang::LambdaExpr*, 8> lambdas;
    if (around.hasBody(definition)) find_lambdas(definition->getBody(), lambdas);
    unsigned count = 0;
    for (const clang::LambdaExpr* lambda : lambdas) ordinals_[lambda->getLambdaClass()] = ++count;
}

std::string display_name(const clang::FunctionDecl& function) {
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&function);
    if (method && method->getParent()->isLambda()) {
        const clang::DeclContext* scope = method->getParent()->getDeclContext();
        while (scope && !scope->isFunctionOrMethod() && !scope->isFileContext()) scope = scope->getParent();
        const auto* around = llvm::dyn_cast_or_null<clang::FunctionDecl>(scope);
        return (around ? display_name(*around) + "::" : std::string()) + kLambda;
    }
    std::string text;
    llvm::raw_string_ostream stream(text);
    function.getNameForDiagnostic(stream, policy_of(function.getASTContext()), /*Qualified=*/true);
    return stream.str();
}

}  // namespace mp::lint
