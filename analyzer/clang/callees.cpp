#include "analyzer/clang/callees.hpp"

#include <algorithm>
#include <array>

#include "analyzer/clang/casts.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/DeclCXX.h"
#include "llvm/ADT/StringSwitch.h"

#include "kernels/numerics/op_traits.hpp"

namespace mp::lint::walk {
namespace {

constexpr int kDepth = 4;  // limit on nested members, when looking for destructors

std::string_view outermost(std::string_view name) {
    const std::size_t end = name.find("::");
    return end == std::string_view::npos ? std::string_view() : name.substr(0, end);
}

std::string_view last(std::string_view name) {
    const std::size_t at = name.rfind("::");
    return at == std::string_view::npos ? name : name.substr(at + 2);
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [&](std::string_view p) { return text.starts_with(p); });
}

bool touches_low_precision(const clang::FunctionDecl& f) {
    const auto low = [](clang::QualType type) { return is_low_precision(element_type(type).dtype); };
    return low(f.getReturnType()) ||
           std::ranges::any_of(f.parameters(), [&](const auto* p) { return low(p->getType()); });
}

// Arithmetic, comparison and bit operators; not the ones that only select an element or a member.
bool is_arithmetic_operator(clang::OverloadedOperatorKind kind) {
    switch (kind) {
        case clang::OO_None:
        case clang::OO_Equal:
        case clang::OO_Arrow:
        case clang::OO_ArrowStar:
        case clang::OO_Subscript:
        case clang::OO_Call:
        case clang::OO_LessLess:
        case clang::OO_GreaterGreater:
        case clang::OO_New:
        case clang::OO_Delete:
        case clang::OO_Array_New:
        case clang::OO_Array_Delete:
            return false;
        default:
            return true;
    }
}

// Such a call shows that overflow of a scale is handled.
bool asks_whether_finite(std::string_view name) { return spells_finite_test(last(name)); }

bool keeps_standard(std::string_view name) {
    if (asks_whether_finite(name)) return true;
    constexpr std::array<std::string_view, 16> kNames{
        "accumulate",  "reduce",         "transform_reduce", "inner_product",
        "partial_sum", "inclusive_scan", "exclusive_scan",   "async",
        "invoke",      "apply",          "call_once",        "thread",
        "jthread",     "packaged_task",  "make_unique",      "make_shared"};
    return std::ranges::find(kNames, last(name)) != kNames.end();
}

// A program that reads files has a model or data, and is no mere benchmark.
bool reads_file(std::string_view name) {
    constexpr std::array<std::string_view, 3> kNames{"fread", "fscanf", "mmap"};
    return std::ranges::find(kNames, name) != kNames.end();
}

bool keeps_global(std::string_view name, const clang::FunctionDecl& f) {
    if (is_conversion_intrinsic(f)) return false;  // recorded as a cast instead
    if (starts_with_any(
            name, {"cublas", "nccl", "cudnn", "MPI_", "cudaLaunch", "cudaGetDeviceProperties",
                   "cudaEventElapsedTime", "cudaDeviceGetAttribute", "atomic", "gpuAtomic", "fastAtomic"}))
        return true;
    return asks_whether_finite(name) || reads_file(name) || touches_low_precision(f);
}

// Queries on tensors that involve no number, and internals of macros.
bool is_bookkeeping(std::string_view name) {
    if (name.find("detail::") != std::string_view::npos || name.find("Error") != std::string_view::npos)
        return true;
    constexpr std::array<std::string_view, 22> kNames{
        "size",      "sizes",         "dim",      "ndimension",  "numel",         "defined",
        "stride",    "strides",       "is_cuda",  "is_cpu",      "device",        "get_device",
        "is_sparse", "layout",        "nbytes",   "itemsize",    "is_contiguous", "requires_grad",
        "str",       "operator bool", "toString", "element_size"};
    return std::ranges::find(kNames, last(name)) != kNames.end();
}

bool is_torch(std::string_view scope) { return scope == "at" || scope == "torch" || scope == "c10"; }

bool keeps_torch(std::string_view scope, std::string_view name, const clang::FunctionDecl& f) {
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&f);
    const ElementType of = method && !method->getParent()->isLambda()
                               ? element_type(clang::QualType(method->getParent()->getTypeForDecl(), 0))
                               : ElementType{};
    // Every step of a chain of options is needed for the dtype at its end.
    if (of.shape == Shape::options && !llvm::isa<clang::CXXConstructorDecl>(f)) return true;
    if (is_bookkeeping(name)) return false;
    if (const auto* made = llvm::dyn_cast<clang::CXXConstructorDecl>(&f)) {
        // Tensors, scalars and array references are plain values; constructing modules, optimizers and
        // guards has effects.
        if (of.shape != Shape::object) return false;
        return is_library_guard(*made->getParent()) || name.starts_with("torch::nn::") ||
               name.starts_with("torch::optim::");
    }
    if (f.isOverloadedOperator() && !is_arithmetic_operator(f.getOverloadedOperator()))
        return f.getOverloadedOperator() == clang::OO_Call && scope == "torch";
    if (scope != "c10") return true;
    return element_type(f.getReturnType()).shape == Shape::options ||
           starts_with_any(name, {"c10::impl::", "c10::autocast", "c10::GradMode", "c10::InferenceMode"});
}

bool keeps_library(const Callee& callee, const clang::FunctionDecl& f) {
    const std::string_view name = callee.name.str();
    const std::string_view scope = outermost(name);
    if (scope.empty()) return keeps_global(name, f);
    if (scope == "std") return keeps_standard(llvm::isa<clang::CXXConstructorDecl>(f) ? last(name) : name);
    if (is_torch(scope)) return keeps_torch(scope, name, f);
    if (scope == "c10d") return !is_bookkeeping(name);
    if (scope == "cuda") return name.find("atomic") != std::string_view::npos;
    if (scope == "pybind11") return name == "pybind11::module_::def";
    const bool constructor = llvm::isa<clang::CXXConstructorDecl>(f);
    if (scope == "cub" || scope == "thrust" || scope == "cooperative_groups" || scope == "nvcuda" ||
        scope == "cutlass" || scope == "cute" || scope == "cudnn_frontend")
        return !constructor && !f.isOverloadedOperator();
    return false;
}

// torch::nn::Linear holds a LinearImpl. A call of either runs the op that the module is named after.
Op module_op(const Callee& callee) {
    std::string_view name = callee.name.str();
    if (name.ends_with("ModuleHolder::operator()") && !callee.template_args.empty())
        for (const TemplateArgument& argument : callee.template_args)
            if (argument.text.str().ends_with("Impl")) name = argument.text.str();
    if (name.ends_with("::forward")) name.remove_suffix(9);
    if (!name.ends_with("Impl") || !name.starts_with("torch::nn::")) return {};
    name.remove_suffix(4);
    return op_from_spelling(name);
}

Op operator_op(clang::OverloadedOperatorKind kind) {
    const auto spelled = [&]() -> std::string_view {
        switch (kind) {
            case clang::OO_Plus:
            case clang::OO_PlusEqual:
                return "at::add";
            case clang::OO_Minus:
            case clang::OO_MinusEqual:
                return "at::sub";
            case clang::OO_Star:
            case clang::OO_StarEqual:
                return "at::mul";
            case clang::OO_Slash:
            case clang::OO_SlashEqual:
                return "at::div";
            default:
                return {};
        }
    }();
    return spelled.empty() ? Op() : op_from_spelling(spelled);
}

void find_destructors(const clang::CXXRecordDecl& record, int depth,
                      std::vector<const clang::CXXDestructorDecl*>& out);

void find_destructors(clang::QualType type, int depth, std::vector<const clang::CXXDestructorDecl*>& out) {
    const auto* record = type->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
    if (record && record->hasDefinition()) find_destructors(*record->getDefinition(), depth, out);
}

// std::unique_ptr<Guard>, std::optional<Guard>: the standard library runs ~Guard.
bool owns_its_argument(const clang::CXXRecordDecl& record) {
    if (!record.isInStdNamespace() || !record.getIdentifier()) return false;
    return llvm::StringSwitch<bool>(record.getName())
        .Cases("unique_ptr", "optional", "vector", "array", "shared_ptr", true)
        .Default(false);
}

void find_destructors(const clang::CXXRecordDecl& record, int depth,
                      std::vector<const clang::CXXDestructorDecl*>& out) {
    if (depth > kDepth || record.hasTrivialDestructor()) return;
    const clang::CXXDestructorDecl* own = record.getDestructor();
    // libtorch's NoGradGuard restores in the destructor of its base; the guard's destructor is recorded
    // anyway.
    const bool is_users = own && own->isUserProvided() && !in_system_header(*own);
    if (own && (is_users || is_library_guard(record))) {
        out.push_back(own);
        return;
    }
    if (in_system_header(record)) {
        const auto* of = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(&record);
        if (of && owns_its_argument(record) && of->getTemplateArgs().size() > 0 &&
            of->getTemplateArgs()[0].getKind() == clang::TemplateArgument::Type)
            find_destructors(of->getTemplateArgs()[0].getAsType(), depth + 1, out);
        return;
    }
    for (const auto* field : record.fields()) find_destructors(field->getType(), depth + 1, out);
    for (const auto& base : record.bases()) find_destructors(base.getType(), depth + 1, out);
}

}  // namespace

const Callee& Callees::of(const clang::FunctionDecl& function) {
    std::unique_ptr<Callee>& slot = known_[function.getCanonicalDecl()];
    if (slot) return *slot;
    auto callee = std::make_unique<Callee>();
    callee->user = !in_system_header(function);
    callee->name = Symbol(qualified_name(function));
    callee->library = is_torch(outermost(callee->name.str()));
    callee->kept = callee->user || keeps_library(*callee, function);
    if (callee->kept) {
        callee->usr = usrs_.of(function);
        callee->template_args = template_arguments(function);
        callee->op = callee->user && !callee->library ? Op() : op_from_spelling(callee->name.str());
        if (!callee->op.known()) callee->op = module_op(*callee);
        if (!callee->op.known() && !callee->user) callee->op = operator_op(function.getOverloadedOperator());
        const auto kind = function.getOverloadedOperator();
        callee->in_place = kind == clang::OO_PlusEqual || kind == clang::OO_MinusEqual ||
                           kind == clang::OO_StarEqual || kind == clang::OO_SlashEqual ||
                           (callee->library && is_in_place(callee->name.str()));
    }
    slot = std::move(callee);
    return *slot;
}

bool is_library_guard(const clang::CXXRecordDecl& record) {
    if (!record.getIdentifier()) return false;
    const llvm::StringRef name = record.getName();
    if (!name.ends_with("Guard") && !name.ends_with("Mode") && !name.ends_with("TLSGuard") &&
        name != "AutoDispatchBelowAutograd" && name != "AutoNonVariableTypeMode")
        return false;
    return is_torch(outermost(qualified_name(record)));
}

std::vector<const clang::CXXDestructorDecl*> destructors_of(const clang::CXXRecordDecl& record) {
    std::vector<const clang::CXXDestructorDecl*> out;
    if (record.hasDefinition()) find_destructors(*record.getDefinition(), 0, out);
    return out;
}

}  // namespace mp::lint::walk
