#include "analyzer/clang/library.hpp"

#include <algorithm>
#include <array>

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/StringExtras.h"

namespace mp::lint {
namespace {

using namespace clang;

struct Entry {
    llvm::StringRef name;
    Arithmetic kind;
};

// Names without the suffixes that only choose rounding or saturation (see stem).
constexpr std::array<Entry, 59> kCalls{{
    {"__hadd", Arithmetic::add},
    {"__hadd2", Arithmetic::add},
    {"__fadd", Arithmetic::add},
    {"__dadd", Arithmetic::add},
    {"__hsub", Arithmetic::subtract},
    {"__hsub2", Arithmetic::subtract},
    {"__fsub", Arithmetic::subtract},
    {"__dsub", Arithmetic::subtract},
    {"__hmul", Arithmetic::multiply},
    {"__hmul2", Arithmetic::multiply},
    {"__fmul", Arithmetic::multiply},
    {"__dmul", Arithmetic::multiply},
    {"__hdiv", Arithmetic::divide},
    {"__h2div", Arithmetic::divide},
    {"__fdiv", Arithmetic::divide},
    {"__fdividef", Arithmetic::divide},
    {"fdividef", Arithmetic::divide},
    {"__hneg", Arithmetic::negate},
    {"__hneg2", Arithmetic::negate},
    {"fma", Arithmetic::fma},
    {"fmaf", Arithmetic::fma},
    {"__fmaf", Arithmetic::fma},
    {"__fma", Arithmetic::fma},
    {"__hfma", Arithmetic::fma},
    {"__hfma2", Arithmetic::fma},
    {"max", Arithmetic::max},
    {"fmax", Arithmetic::max},
    {"fmaxf", Arithmetic::max},
    {"__hmax", Arithmetic::max},
    {"__hmax2", Arithmetic::max},
    {"__hmax_nan", Arithmetic::max},
    {"__hmax2_nan", Arithmetic::max},
    {"min", Arithmetic::min},
    {"fmin", Arithmetic::min},
    {"fminf", Arithmetic::min},
    {"__hmin", Arithmetic::min},
    {"__hmin2", Arithmetic::min},
    {"__hmin_nan", Arithmetic::min},
    {"__hmin2_nan", Arithmetic::min},
    {"clamp", Arithmetic::clamp},
    {"sqrt", Arithmetic::sqrt},
    {"sqrtf", Arithmetic::sqrt},
    {"hsqrt", Arithmetic::sqrt},
    {"h2sqrt", Arithmetic::sqrt},
    {"__fsqrt", Arithmetic::sqrt},
    {"rsqrt", Arithmetic::rsqrt},
    {"rsqrtf", Arithmetic::rsqrt},
    {"hrsqrt", Arithmetic::rsqrt},
    {"h2rsqrt", Arithmetic::rsqrt},
    {"__frsqrt", Arithmetic::rsqrt},
    {"lerp", Arithmetic::lerp},
    {"pow", Arithmetic::square},
    {"powf", Arithmetic::square},
    {"__powf", Arithmetic::square},
    {"__shfl", Arithmetic::shuffle},
    {"__shfl_up", Arithmetic::shuffle},
    {"__shfl_down", Arithmetic::shuffle},
    {"__shfl_xor", Arithmetic::shuffle},
    {"__reduce_add", Arithmetic::reduce},
}};

llvm::StringRef name_of_function(const FunctionDecl& f) {
    const IdentifierInfo* id = f.getIdentifier();
    return id ? id->getName() : llvm::StringRef();
}

// "__hadd2_rn" -> "__hadd2", "__shfl_xor_sync" -> "__shfl_xor"
llvm::StringRef stem(llvm::StringRef name) {
    for (const llvm::StringRef suffix : {"_rn", "_rz", "_ru", "_rd", "_sat", "_relu", "_sync"})
        name.consume_back(suffix);
    return name;
}

bool is_method_of(const FunctionDecl& f, llvm::StringRef scope) {
    return isa<CXXMethodDecl>(f) && llvm::StringRef(f.getQualifiedNameAsString()).starts_with(scope);
}

// Whether the functor of a library reduction is an addition: cub::Sum(), cg::plus<T>(), std::plus<>{}.
bool adds(QualType functor) {
    const CXXRecordDecl* record = functor.getNonReferenceType()->getAsCXXRecordDecl();
    if (!record || !record->getIdentifier()) return false;
    return record->getName() == "plus" || record->getName() == "Sum";
}

LibraryCall library_reduction(const FunctionDecl& f, const CallExpr& call) {
    const std::string name = f.getQualifiedNameAsString();
    const llvm::StringRef text = name;
    const bool block =
        text.contains("cub::") && (text.contains("BlockReduce") || text.contains("WarpReduce"));
    const bool group = text.starts_with("cooperative_groups::") && text.ends_with("::reduce");
    if (block && text.ends_with("::Sum")) return {Arithmetic::reduce, 0};
    const unsigned functor = group ? 2 : 1;
    if ((group || (block && text.ends_with("::Reduce"))) && call.getNumArgs() > functor &&
        adds(call.getArg(functor)->getType()))
        return {Arithmetic::reduce, group ? 1u : 0u};
    return {};
}

}  // namespace

bool is_library(const FunctionDecl& f) {
    const SourceManager& sources = f.getASTContext().getSourceManager();
    return f.getBuiltinID() != 0 || !f.hasBody() || name_of_function(f).starts_with("__") ||
           f.isInStdNamespace() || sources.isInSystemHeader(f.getLocation());
}

std::optional<LibraryStore> library_store(const FunctionDecl& f, const CallExpr& call) {
    const llvm::StringRef name = name_of_function(f);
    const bool cached = name == "__stcs" || name == "__stcg" || name == "__stwt" || name == "__stwb";
    std::optional<LibraryStore> found;
    if (cached || name == "memcpy") {
        found = LibraryStore{0, 1};
    } else if (name == "Store" || name.starts_with("StoreDirect")) {
        const std::string qualified = f.getQualifiedNameAsString();
        if (!llvm::StringRef(qualified).contains("cub::")) return std::nullopt;
        found = name == "Store" ? LibraryStore{0, 1} : LibraryStore{1, 2};
    }
    return found && found->source < call.getNumArgs() ? found : std::nullopt;
}

bool is_vector_of(const FunctionDecl& f) {
    llvm::StringRef name = name_of_function(f);
    return name.consume_front("make_") && f.getNumParams() >= 2 && llvm::isDigit(name.back());
}

bool is_conversion(const FunctionDecl& f) {
    const llvm::StringRef name = name_of_function(f);
    if (!name.starts_with("__") || f.getNumParams() == 0) return false;
    return name.contains("2half") || name.contains("2bfloat16") || name.contains("2float");
}

bool is_bit_cast(const FunctionDecl& f) {
    const llvm::StringRef name = name_of_function(f);
    return name == "bit_cast" || (name.starts_with("__") && name.contains("_as_"));
}

bool is_random(const FunctionDecl& f) {
    const llvm::StringRef name = name_of_function(f);
    return name.starts_with("curand") || name == "rand" || is_method_of(f, "at::Philox") ||
           is_method_of(f, "at::philox");
}

LibraryCall library_call(const FunctionDecl& f, const CallExpr& call) {
    const llvm::StringRef name = name_of_function(f);
    if (name.empty()) return {};
    if (const LibraryCall reduction = library_reduction(f, call); reduction.kind != Arithmetic::none)
        return reduction;
    if (is_method_of(f, "cooperative_groups::") && name.starts_with("shfl")) return {Arithmetic::shuffle, 0};
    if (!is_library(f)) return {};
    const llvm::StringRef short_name = stem(name.starts_with("__builtin_") ? name.drop_front(10) : name);
    const auto found = std::ranges::find(kCalls, short_name, &Entry::name);
    if (found == kCalls.end()) return {};
    const bool masked = found->kind == Arithmetic::shuffle || found->kind == Arithmetic::reduce;
    return {found->kind, masked && name.ends_with("_sync") ? 1u : 0u};
}

}  // namespace mp::lint
