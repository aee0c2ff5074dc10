#include "analyzer/clang/visitor.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyzer/clang/body_walker.hpp"
#include "analyzer/clang/calls.hpp"
#include "analyzer/clang/flow.hpp"
#include "analyzer/clang/type_uses.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclFriend.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Index/USRGeneration.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"

namespace mp::lint {
namespace {

constexpr int kChain = 16;  // limit on templates that instantiate templates

FunctionKind kind_of(const clang::FunctionDecl& f) {
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&f);
    if (method && method->getParent()->isLambda()) return FunctionKind::lambda;
    if (f.hasAttr<clang::CUDAGlobalAttr>()) return FunctionKind::kernel;
    const auto* device = f.getAttr<clang::CUDADeviceAttr>();
    const auto* host = f.getAttr<clang::CUDAHostAttr>();
    // The compiler gives constexpr functions both attributes implicitly; they do not count.
    if (device && !device->isImplicit()) return host ? FunctionKind::host_device : FunctionKind::device;
    return FunctionKind::host;
}

bool is_host_code(const clang::FunctionDecl& f) {
    const auto* device = f.getAttr<clang::CUDADeviceAttr>();
    return !f.hasAttr<clang::CUDAGlobalAttr>() && !(device && !device->isImplicit());
}

void describe_method(const clang::CXXMethodDecl& method, Usrs& usrs, Function& out) {
    out.parent_class = Symbol(qualified_name(*method.getParent()));
    out.is_virtual = method.isVirtual();
    for (const auto* overridden : method.overridden_methods()) out.overrides.push_back(usrs.of(*overridden));
}

Function describe(const clang::FunctionDecl& f, Usrs& usrs) {
    Function out;
    const clang::ASTContext& ast = f.getASTContext();
    out.usr = usrs.of(f);
    out.name = Symbol(qualified_name(f));
    out.display = Symbol(display_name(f));
    out.kind = kind_of(f);
    out.span = span_of(f.getNameInfo().getSourceRange(), ast);
    if (f.isTemplateInstantiation()) out.instantiated = span_of(f.getPointOfInstantiation(), ast);
    if (const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&f)) describe_method(*method, usrs, out);
    out.template_args = template_arguments(f);
    for (const auto* p : f.parameters()) {
        const ElementType type = element_type(p->getType());
        out.params.push_back({Symbol(p->getNameAsString()), type.dtype, type.shape});
    }
    out.returns = element_type(f.getReturnType()).dtype;
    for (const auto* note : f.specific_attrs<clang::AnnotateAttr>())
        out.annotations.push_back(Symbol(std::string_view(note->getAnnotation())));
    return out;
}

// How often each word stands in the text of a file, outside of comments.
using Words = llvm::StringMap<unsigned>;
Words words_of(clang::FileID file, const clang::ASTContext& ast) {
    const clang::SourceManager& sources = ast.getSourceManager();
    clang::Lexer lexer(file, sources.getBufferOrFake(file), sources, ast.getLangOpts());
    Words words;
    for (clang::Token token; !lexer.LexFromRawLexer(token);)
        if (token.is(clang::tok::raw_identifier)) ++words[token.getRawIdentifier()];
    return words;
}

// Function::is_unnamed. The tree knows the names that macros make, the text those in templates and in code with errors.
class Unnamed {
public:
    explicit Unnamed(const clang::ASTContext& ast) : ast_(ast), sources_(ast.getSourceManager()) {}

    bool has(const clang::FunctionDecl& f) {
        const bool is_plain = !llvm::isa<clang::CXXMethodDecl>(f) && f.getDeclName().isIdentifier() &&
                              !f.isTemplateInstantiation() && !f.isMain() && !f.isExternC();
        if (!is_plain || f.isReferenced() || f.hasAttr<clang::UsedAttr>() ||
            f.hasAttr<clang::ConstructorAttr>())
            return false;
        const bool is_kernel = f.hasAttr<clang::CUDAGlobalAttr>();
        std::map<clang::FileID, unsigned> declared;
        for (const clang::FunctionDecl* d : f.redecls()) {
            const clang::SourceLocation at = d->getLocation();
            if (at.isMacroID() || (!is_kernel && !sources_.isWrittenInMainFile(at))) return false;
            ++declared[sources_.getFileID(at)];
        }
        return std::ranges::all_of(declared, [&](const auto& file) {
            const auto [words, is_new] = words_.try_emplace(file.first);
            if (is_new) words->second = words_of(file.first, ast_);
            return words->second.lookup(f.getName()) == file.second;
        });
    }

private:
    const clang::ASTContext& ast_;
    const clang::SourceManager& sources_;
    std::map<clang::FileID, Words> words_;
};

class UnitVisitor {
public:
    UnitVisitor(clang::ASTContext& ast, Unit& out) : ast_(ast), out_(out), callees_(usrs_), unnamed_(ast) {}

    void run() {
        first_ = out_.functions.size();
        scope(*ast_.getTranslationUnitDecl(), SourceSpan{});
        follow_instantiations();
        for (auto& [path, file] : files_) out_.functions.push_back(std::move(file));
    }

private:
    // `from`: for members of class templates, the place where the class was instantiated.
    void scope(const clang::DeclContext& context, const SourceSpan& from) {
        // Declarations that are still lazy in a precompiled header are not user code: do not load them.
        for (const clang::Decl* d : context.noload_decls()) declaration(*d, from);
    }

    void declaration(const clang::Decl& d, const SourceSpan& from) {
        if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(&d)) return scope(*space, from);
        if (llvm::isa<clang::LinkageSpecDecl, clang::ExportDecl>(&d))
            return scope(*clang::Decl::castToDeclContext(&d), from);
        if (in_system_header(d)) return;
        if (const auto* f = llvm::dyn_cast<clang::FunctionDecl>(&d)) return function(*f, from);
        if (const auto* t = llvm::dyn_cast<clang::FunctionTemplateDecl>(&d))
            return function_template(*t, from);
        if (const auto* t = llvm::dyn_cast<clang::ClassTemplateDecl>(&d)) return class_template(*t);
        if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&d)) return class_scope(*record, from);
        if (const auto* v = llvm::dyn_cast<clang::VarDecl>(&d)) lambdas_of(v->getInit(), from);
        // Members are handled in class_scope.
        if (!d.getDeclContext()->isRecord()) outside_use(d);
        if (const auto* f = llvm::dyn_cast<clang::FriendDecl>(&d))
            if (const clang::NamedDecl* befriended = f->getFriendDecl()) declaration(*befriended, from);
    }

    void function_template(const clang::FunctionTemplateDecl& t, const SourceSpan& from) {
        if (t.getDeclContext()->isDependentContext()) return;
        if (t.getCanonicalDecl() != &t) return;  // every redeclaration lists the same specializations
        bool instantiated = false;
        for (const auto* instance : t.specializations()) {
            const clang::FunctionDecl* definition = nullptr;
            if (!instance->hasBody(definition)) continue;
            instantiated = true;
            function(*definition, from);
        }
        if (!instantiated && t.getTemplatedDecl()->hasBody()) ++out_.coverage.uninstantiated;
    }

    void class_template(const clang::ClassTemplateDecl& t) {
        if (t.getDeclContext()->isDependentContext() || t.getCanonicalDecl() != &t) return;
        bool instantiated = false;
        for (const auto* instance : t.specializations()) {
            if (!instance->isCompleteDefinition()) continue;
            instantiated = true;
            // Explicit specializations are classes of their own in the source.
            if (!instance->isExplicitSpecialization())
                class_scope(*instance, span_of(instance->getPointOfInstantiation(), ast_));
        }
        const clang::CXXRecordDecl* pattern = t.getTemplatedDecl();
        if (!instantiated && pattern->hasDefinition()) ++out_.coverage.uninstantiated;
    }

    void class_scope(const clang::CXXRecordDecl& record, const SourceSpan& from) {
        if (record.isDependentContext() || !record.isThisDeclarationADefinition() || record.isLambda())
            return;
        Function types;
        for (const clang::Decl* d : record.decls()) walk::add_outside_use(*d, types);
        if (!types.types.empty()) class_types(record, from, std::move(types));
        scope(record, from);
    }

    // An alias or constant outside functions: a pseudo function for the file contains it.
    void outside_use(const clang::Decl& d) {
        Function found;
        walk::add_outside_use(d, found);
        if (found.types.empty()) return;
        const SourceSpan& at = found.types.front().span;
        Function& file = files_[at.file];
        if (file.usr.empty()) {
            file.usr = Symbol("c:@file@" + std::string(at.file.str()));
            file.name = file.display = Symbol("file scope");
            file.span = at;
        }
        file.types.push_back(std::move(found.types.front()));
    }

    // The aliases of a configuration class: a pseudo function for the class contains them.
    void class_types(const clang::CXXRecordDecl& record, const SourceSpan& from, Function out) {
        llvm::SmallString<128> usr;
        clang::index::generateUSRForDecl(&record, usr);
        out.usr = Symbol(std::string_view(usr.str()));
        out.name = Symbol(qualified_name(record));
        out.display = Symbol(type_name(clang::QualType(record.getTypeForDecl(), 0), ast_));
        out.span = span_of(record.getLocation(), ast_);
        out.instantiated = from;
        if (const auto* of = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(&record))
            out.template_args = template_arguments(of->getTemplateArgs(), ast_);
        out_.functions.push_back(std::move(out));
    }

    void lambdas_of(const clang::Stmt* s, const SourceSpan& from) {
        if (!s) return;
        if (const auto* e = llvm::dyn_cast<clang::Expr>(s); e && e->isInstantiationDependent()) return;
        if (const auto* lambda = llvm::dyn_cast<clang::LambdaExpr>(s)) return this->lambda(*lambda, from);
        for (const clang::Stmt* child : s->children()) lambdas_of(child, from);
    }

    void lambda(const clang::LambdaExpr& e, const SourceSpan& from) {
        if (const auto* generic = e.getLambdaClass()->getDependentLambdaCallOperator())
            return function_template(*generic, from);
        if (const auto* body = e.getCallOperator()) function(*body, from);
    }

    void function(const clang::FunctionDecl& f, const SourceSpan& from) {
        if (!f.doesThisDeclarationHaveABody() || f.isDependentContext() || f.isImplicit() || f.isDefaulted())
            return;
        if (in_system_header(f) || !f.getBody() || !seen_.insert(&f).second) return;
        ++out_.coverage.functions;
        Function facts = describe(f, usrs_);
        facts.is_unnamed = unnamed_.has(f);
        if (!facts.instantiated.known()) facts.instantiated = from;
        const SourceSpan instantiated = facts.instantiated;
        const LocalFlow flow(f, ast_);
        walk::State state{.ast = ast_,
                          .decl = f,
                          .usrs = usrs_,
                          .callees = callees_,
                          .flow = flow,
                          .out = facts,
                          .mutations = walk::Mutations(f)};
        walk::BodyWalker walker(state, out_.coverage);
        walker.run();
        flow.add_accumulations(facts);
        flow.add_updates(facts);
        flow.add_scalings(facts);
        if (is_host_code(f)) walk::add_flow(state);
        out_.functions.push_back(std::move(facts));
        for (const clang::LambdaExpr* e : walker.lambdas()) lambda(*e, instantiated);
        for (const clang::CXXRecordDecl* record : walker.classes()) class_scope(*record, instantiated);
    }

    // kernel<T> is instantiated where launcher<T> calls it. Report the place that chose T instead.
    void follow_instantiations() {
        std::unordered_map<Symbol, std::vector<std::pair<std::size_t, const Call*>>> callers;
        for (std::size_t i = first_; i < out_.functions.size(); ++i)
            for (const Call& call : out_.functions[i].calls) callers[call.callee].emplace_back(i, &call);
        std::vector<SourceSpan> direct;
        for (std::size_t i = first_; i < out_.functions.size(); ++i)
            direct.push_back(out_.functions[i].instantiated);
        for (std::size_t i = first_; i < out_.functions.size(); ++i) {
            std::size_t at = i;
            for (int step = 0; step < kChain; ++step) {
                const SourceSpan& place = direct[at - first_];
                const auto found = callers.find(out_.functions[at].usr);
                if (!place.known() || found == callers.end()) break;
                std::size_t next = at;
                for (const auto& [caller, call] : found->second)
                    if (call->span.file == place.file && call->span.line <= place.line &&
                        place.line <= call->span.end_line)
                        next = caller;
                if (next == at || !direct[next - first_].known()) break;
                at = next;
            }
            if (at != i) out_.functions[i].instantiated = direct[at - first_];
        }
    }

    clang::ASTContext& ast_;
    Unit& out_;
    Usrs usrs_;
    walk::Callees callees_;
    Unnamed unnamed_;
    std::size_t first_ = 0;
    std::map<Symbol, Function> files_;
    llvm::DenseSet<const clang::FunctionDecl*> seen_;
};

}  // namespace

void visit_unit(clang::ASTContext& ast, Unit& out) { UnitVisitor(ast, out).run(); }

}  // namespace mp::lint
