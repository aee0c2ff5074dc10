#include "analyzer/clang/casts.hpp"

#include "analyzer/clang/operands.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/ExprCXX.h"

namespace mp::lint::walk {
namespace {

bool is_number(const ElementType& t) { return t.shape == Shape::scalar || t.shape == Shape::vec; }

bool is_value(DType d) { return is_float(d) || is_integer(d) || d == DType::boolean; }

// The conversions that become facts: into or out of low precision, between floats or from integers.
bool matters(DType from, DType to) {
    if (from == to || !is_float(to) || !is_value(from)) return false;
    return is_low_precision(from) || is_low_precision(to);
}

// The cast that produced this value, also through a local variable that only passes it on.
std::int32_t inner_cast(const clang::Expr& source, const State& state) {
    const clang::Expr* e = same_value(&source);
    // Implicit widening is exact, so it is skipped between two casts.
    while (const auto* cast = llvm::dyn_cast<clang::CastExpr>(e)) {
        if (state.cast_of.contains(e) || cast->getCastKind() != clang::CK_FloatingCast) break;
        e = same_value(cast->getSubExpr());
    }
    if (const clang::VarDecl* variable = variable_of(e)) {
        if (state.mutations.uses(*variable) != 1) return kNone;
        e = resolved(e, state);
    }
    // `return half(x)`, a functional cast: the conversion is the constructor below it.
    while (!state.cast_of.contains(e)) {
        const auto* cast = llvm::dyn_cast<clang::ExplicitCastExpr>(e);
        if (!cast) return kNone;
        e = same_value(cast->getSubExpr());
    }
    return state.cast_of.lookup(e);
}

// __float2half((float)i): the integer is the converted value, in two steps.
const clang::Expr* integer_behind(const clang::Expr& source) {
    const clang::Expr* e = source.IgnoreParenImpCasts();
    while (const auto* cast = llvm::dyn_cast<clang::ExplicitCastExpr>(e))
        e = cast->getSubExpr()->IgnoreParenImpCasts();
    return e->getType()->isIntegerType() ? e : nullptr;
}

void describe_source(const clang::Expr& source, Cast& cast, const State& state) {
    cast.source = make_operand(source, state);
    cast.source.dtype = cast.from;
    cast.inner = inner_cast(source, state);
    const clang::Expr* integer = integer_behind(source);
    if (integer || !cast.source.constant.empty()) cast.role = state.flow.role_of(source);
    if (!integer) return;
    // T(count) for a class made from float: the language widened the integer first.
    const DType whole = element_type(integer->getType()).dtype;
    if (is_integer(whole)) cast.from = cast.source.dtype = whole;
    cast.loop_index = state.flow.is_index(*integer);
    cast.bound = state.flow.bound_of(*integer);
}

bool runs_on_device(FunctionKind kind) {
    return kind == FunctionKind::kernel || kind == FunctionKind::device || kind == FunctionKind::host_device;
}

void describe_use(const Use& use, Cast& cast, const State& state) {
    cast.purpose = use.purpose;
    cast.function = use.function;
    if (use.variable) cast.target = Symbol(use.variable->getNameAsString());
    if (!use.target) return;
    cast.target = spelling(*use.target, state.ast);
    const bool stored = use.purpose == Purpose::store || use.purpose == Purpose::accumulate;
    const bool on_device = runs_on_device(state.out.kind) || state.decl.hasAttr<clang::CUDADeviceAttr>();
    cast.output = stored && on_device && stored_through(use.target);
}

struct Conversion {
    DType from = DType::unknown;
    DType to = DType::unknown;
    CastForm form = CastForm::explicit_;
};

void add(const clang::Expr& at, const clang::Expr& source, const Conversion& conversion, const Use& use,
         State& state) {
    Cast cast{.span = span_of(at.getSourceRange(), state.ast),
              .from = conversion.from,
              .to = conversion.to,
              .form = conversion.form,
              .source = {},
              .target = {},
              .function = {},
              .macro = macro_at(at.getExprLoc(), state.ast)};
    describe_source(source, cast, state);
    describe_use(use, cast, state);
    cast.in_loop = state.loop_depth > 0;
    state.cast_of[&at] = static_cast<std::int32_t>(state.out.casts.size());
    state.out.casts.push_back(std::move(cast));
}

// fp8 intrinsics work on storage bytes; an argument names the format.
DType fp8_named(const clang::CallExpr& call, const State& state) {
    for (const clang::Expr* argument : call.arguments()) {
        const std::string name = constant_of(*argument, state);
        if (name == "__NV_E4M3") return DType::e4m3;
        if (name == "__NV_E5M2") return DType::e5m2;
    }
    return DType::unknown;
}

bool is_default(const clang::CXXConstructExpr& e, unsigned from) {
    for (unsigned i = from; i < e.getNumArgs(); ++i)
        if (!llvm::isa<clang::CXXDefaultArgExpr>(e.getArg(i))) return false;
    return true;
}

}  // namespace

bool is_half_class(clang::QualType type) {
    const ElementType t = element_type(type);
    return is_number(t) && is_low_precision(t.dtype) && type.getNonReferenceType()->isRecordType();
}

void add_construction(const clang::CXXConstructExpr& e, const Use& use, State& state) {
    if (e.getNumArgs() == 0 || !is_half_class(e.getType()) || !is_default(e, 1)) return;
    const ElementType from = element_type(e.getArg(0)->getType()), to = element_type(e.getType());
    if (!is_number(from) || !matters(from.dtype, to.dtype)) return;
    add(e, *e.getArg(0), {from.dtype, to.dtype, use.form}, use, state);
}

void add_conversion(const clang::CXXMemberCallExpr& e, const Use& use, State& state) {
    const auto* callee = llvm::dyn_cast_or_null<clang::CXXConversionDecl>(e.getDirectCallee());
    const clang::Expr* object = e.getImplicitObjectArgument();
    if (!callee || !object || !is_half_class(object->getType())) return;
    const ElementType from = element_type(object->getType()), to = element_type(e.getType());
    if (is_number(to) && matters(from.dtype, to.dtype))
        add(e, *object, {from.dtype, to.dtype, use.form}, use, state);
}

void add_assignment(const clang::CXXOperatorCallExpr& e, State& state) {
    if (e.getOperator() != clang::OO_Equal || e.getNumArgs() != 2 || !is_half_class(e.getArg(0)->getType()))
        return;
    const ElementType from = element_type(e.getArg(1)->getType()), to = element_type(e.getArg(0)->getType());
    if (!is_number(from) || !matters(from.dtype, to.dtype)) return;
    const Use use{.purpose = Purpose::store, .form = CastForm::assign, .target = e.getArg(0), .function = {}};
    add(e, *e.getArg(1), {from.dtype, to.dtype, CastForm::assign}, use, state);
}

void add_builtin_cast(const clang::CastExpr& e, const Use& use, State& state) {
    const ElementType from = element_type(e.getSubExpr()->getType()), to = element_type(e.getType());
    switch (e.getCastKind()) {
        case clang::CK_FloatingCast:
        case clang::CK_IntegralToFloating: {
            if (!matters(from.dtype, to.dtype)) return;
            const auto* implicit = llvm::dyn_cast<clang::ImplicitCastExpr>(&e);
            const bool written = !implicit || implicit->isPartOfExplicitCast();
            add(e, *e.getSubExpr(),
                {from.dtype, to.dtype, written ? CastForm::explicit_ : CastForm::implicit}, use, state);
            return;
        }
        case clang::CK_BitCast: {
            const bool storage = from.shape == Shape::pointer && to.shape == Shape::pointer;
            const bool low = is_low_precision(from.dtype) || is_low_precision(to.dtype);
            const bool known = from.dtype != DType::unknown && to.dtype != DType::unknown;
            if (storage && low && known && from.dtype != to.dtype && llvm::isa<clang::ExplicitCastExpr>(&e))
                add(e, *e.getSubExpr(), {from.dtype, to.dtype, CastForm::reinterpret}, use, state);
            return;
        }
        default:
            return;
    }
}

bool is_conversion_intrinsic(const clang::FunctionDecl& callee) {
    if (!callee.getIdentifier() || !callee.getDeclContext()->getRedeclContext()->isFileContext())
        return false;
    const llvm::StringRef name = callee.getName();
    if (!name.starts_with("__") || callee.getNumParams() == 0) return false;
    return name.contains("2half") || name.contains("2bfloat16") || name.contains("half2float") ||
           name.contains("half22float") || name.contains("bfloat162float") ||
           name.contains("bfloat1622float") || name == "__low2float" || name == "__high2float" ||
           name.starts_with("__nv_cvt_");
}

bool add_intrinsic(const clang::CallExpr& e, const Use& use, State& state) {
    const clang::FunctionDecl* callee = e.getDirectCallee();
    if (!callee || !is_conversion_intrinsic(*callee) || !in_system_header(*callee)) return false;
    const bool fp8 = callee->getName().starts_with("__nv_cvt_");
    ElementType from = element_type(e.getArg(0)->getType()), to = element_type(e.getType());
    if (fp8 && !is_float(from.dtype)) from.dtype = fp8_named(e, state);
    if (fp8 && !is_float(to.dtype)) to.dtype = fp8_named(e, state);
    if (!matters(from.dtype, to.dtype)) return true;
    // __floats2half2_rn(a, b) converts two values: each has its own fact, at its argument.
    if (callee->getName().starts_with("__floats2")) {
        for (const clang::Expr* argument : e.arguments()) {
            add(*argument, *argument, {from.dtype, to.dtype, CastForm::intrinsic}, use, state);
            state.cast_of.erase(argument);
        }
        return true;
    }
    add(e, *e.getArg(0), {from.dtype, to.dtype, CastForm::intrinsic}, use, state);
    for (const clang::Expr* argument : e.arguments())
        if (constant_of(*argument, state) == "__NV_NOSAT") state.out.casts.back().unsaturated = true;
    return true;
}

}  // namespace mp::lint::walk
