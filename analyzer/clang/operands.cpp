#include "analyzer/clang/operands.hpp"

#include <array>
#include <charconv>

#include "analyzer/clang/types.hpp"
#include "clang/AST/DeclCXX.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace mp::lint::walk {
namespace {

template <class Float>
std::string shortest(Float value) {
    std::array<char, 40> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

std::string number(llvm::APFloat value) {
    if (value.isNaN()) return "nan";
    if (value.isInfinity()) return value.isNegative() ? "-inf" : "inf";
    if (&value.getSemantics() == &llvm::APFloat::IEEEsingle()) return shortest(value.convertToFloat());
    bool inexact = false;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    return shortest(value.convertToDouble());
}

std::string enumerator(const clang::EnumDecl& type, const llvm::APSInt& value) {
    const clang::EnumDecl* definition = type.getDefinition();
    if (!definition) return {};
    for (const auto* e : definition->enumerators())
        if (llvm::APSInt::isSameValue(e->getInitVal(), value)) return e->getNameAsString();
    return {};
}

std::string evaluated(const clang::Expr& e, const clang::ASTContext& context) {
    const clang::QualType type = e.getType();
    if (e.isValueDependent() || e.containsErrors()) return {};
    if (!type->isArithmeticType() && !type->isEnumeralType()) return {};
    clang::Expr::EvalResult result;
    if (!e.EvaluateAsRValue(result, context) || result.HasSideEffects) return {};
    if (result.Val.isFloat()) return number(result.Val.getFloat());
    if (!result.Val.isInt()) return {};
    if (type->isBooleanType()) return result.Val.getInt().getBoolValue() ? "true" : "false";
    if (const auto* of_enum = type->getAs<clang::EnumType>())
        return enumerator(*of_enum->getDecl(), result.Val.getInt());
    return llvm::toString(result.Val.getInt(), 10);
}

bool is_null(const clang::Expr& e) {
    if (llvm::isa<clang::CXXNullPtrLiteralExpr, clang::GNUNullExpr>(&e)) return true;
    const auto* cast = llvm::dyn_cast<clang::CastExpr>(&e);
    return cast && cast->getCastKind() == clang::CK_NullToPointer;
}

// __half(0.f), __float2half(1e-8f): the number is the argument.
const clang::Expr* converted(const clang::Expr& e) {
    const ElementType to = element_type(e.getType());
    if (!is_low_precision(to.dtype) || (to.shape != Shape::scalar && to.shape != Shape::vec)) return nullptr;
    if (const auto* made = llvm::dyn_cast<clang::CXXConstructExpr>(&e))
        return made->getNumArgs() == 1 ? made->getArg(0) : nullptr;
    if (const auto* cast = llvm::dyn_cast<clang::ExplicitCastExpr>(&e)) return cast->getSubExpr();
    const auto* call = llvm::dyn_cast<clang::CallExpr>(&e);
    const clang::FunctionDecl* callee = call ? call->getDirectCallee() : nullptr;
    if (!callee || !callee->getIdentifier() || call->getNumArgs() != 1) return nullptr;
    const llvm::StringRef name = callee->getName();
    return name.contains("2half") || name.contains("2bfloat16") ? call->getArg(0) : nullptr;
}

DType scalar_type(llvm::StringRef enumerator) {
    return llvm::StringSwitch<DType>(enumerator)
        .Case("Half", DType::fp16)
        .Case("BFloat16", DType::bf16)
        .Case("Float", DType::fp32)
        .Case("Double", DType::fp64)
        .Cases("Float8_e5m2", "Float8_e5m2fnuz", DType::e5m2)
        .Cases("Float8_e4m3fn", "Float8_e4m3fnuz", DType::e4m3)
        .Case("Byte", DType::uint8)
        .Case("Char", DType::int8)
        .Case("Short", DType::int16)
        .Case("Int", DType::int32)
        .Case("Long", DType::int64)
        .Case("Bool", DType::boolean)
        .Default(DType::unknown);
}

bool is_scalar_type(clang::QualType type) {
    const auto* e = type->getAs<clang::EnumType>();
    return e && e->getDecl()->getIdentifier() && e->getDecl()->getName() == "ScalarType";
}

std::int32_t call_behind(const clang::Expr& value, const State& state) {
    const auto found = state.call_of.find(&value);
    return found == state.call_of.end() ? kNone : found->second;
}

// Also for the object behind a reference parameter: the parameter names the caller's value.
std::int32_t unchanged_parameter(const clang::Expr& e, const State& state) {
    const clang::VarDecl* variable = variable_of(&e);
    const auto* parameter = llvm::dyn_cast_or_null<clang::ParmVarDecl>(variable);
    if (!parameter || parameter->getDeclContext() != clang::Decl::castToDeclContext(&state.decl))
        return kNone;
    if (!state.mutations.is_stable(*parameter)) return kNone;
    return static_cast<std::int32_t>(parameter->getFunctionScopeIndex());
}

bool has_statistics(const ElementType& type) {
    return is_float(type.dtype) && (type.shape == Shape::scalar || type.shape == Shape::vec);
}

}  // namespace

const clang::Expr* before_conversions(const clang::Expr* e) {
    for (;;) {
        e = same_value(e);
        if (const auto* cast = llvm::dyn_cast<clang::ExplicitCastExpr>(e))
            if (cast->getCastKind() == clang::CK_ConstructorConversion) e = same_value(cast->getSubExpr());
        const auto* made = llvm::dyn_cast_or_null<clang::CXXConstructExpr>(e);
        if (!made || made->getNumArgs() == 0 || element_type(made->getType()).shape == Shape::tensor)
            return e;
        for (unsigned i = 1; i < made->getNumArgs(); ++i)
            if (!llvm::isa<clang::CXXDefaultArgExpr>(made->getArg(i))) return e;
        if (is_low_precision(element_type(made->getType()).dtype) ||
            !in_system_header(*made->getConstructor()))
            return e;
        e = made->getArg(0);
    }
}

std::string name_of_value(const clang::Expr& value) {
    const clang::Expr* e = same_value(&value)->IgnoreParenCasts();
    if (llvm::isa<clang::CXXThisExpr>(e)) return "this";
    if (const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(e))
        return llvm::isa<clang::VarDecl, clang::BindingDecl>(ref->getDecl())
                   ? ref->getDecl()->getNameAsString()
                   : std::string();
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(e))
        return unary->getOpcode() == clang::UO_AddrOf ? name_of_value(*unary->getSubExpr()) : std::string();
    const auto* member = llvm::dyn_cast<clang::MemberExpr>(e);
    if (!member || !llvm::isa<clang::FieldDecl, clang::VarDecl>(member->getMemberDecl())) return {};
    const std::string owner = name_of_value(*member->getBase());
    if (owner.empty()) return {};
    return owner + (member->isArrow() ? "->" : ".") + member->getMemberDecl()->getNameAsString();
}

std::string constant_of(const clang::Expr& value, const State& state) {
    const clang::Expr* e = before_conversions(&value);
    if (is_null(value) || is_null(*e->IgnoreParenImpCasts())) return "nullptr";
    if (const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(e->IgnoreParenImpCasts()))
        if (llvm::isa<clang::EnumConstantDecl>(ref->getDecl())) return ref->getDecl()->getNameAsString();
    if (const clang::Expr* inner = converted(*e)) return constant_of(*inner, state);
    // An enumerator converted to an integer keeps its name. A number gets the type of the conversion.
    const bool as_written = e->getType()->isEnumeralType() || !value.getType()->isArithmeticType();
    std::string text = evaluated(as_written ? *e : value, state.ast);
    if (!text.empty()) return text;
    const clang::Expr* definition = resolved(e, state);
    return definition && definition != e && !variable_of(definition) ? constant_of(*definition, state)
                                                                     : std::string();
}

DType dtype_named_by(const clang::Expr& value, const State& state) {
    const clang::Expr* e = resolved(before_conversions(&value), state);
    e = before_conversions(e);
    if (is_scalar_type(e->getType())) {
        if (const std::string name = evaluated(*e, state.ast); !name.empty()) return scalar_type(name);
    }
    const std::int32_t call = call_behind(*e, state);
    if (call == kNone) return DType::unknown;
    const Operand& result = state.out.calls[static_cast<std::size_t>(call)].result;
    return result.shape == Shape::options || is_scalar_type(e->getType()) || result.shape == Shape::object ||
                   result.shape == Shape::other
               ? result.dtype
               : DType::unknown;
}

// c ? x : 1.0f, also through a variable: the number on the one branch that is constant.
std::string alternative_of(const clang::Expr& value, const State& state) {
    const clang::Expr* e = resolved(before_conversions(&value), state);
    const auto* choice = llvm::dyn_cast<clang::ConditionalOperator>(e->IgnoreParenImpCasts());
    if (!choice || !is_float(element_type(choice->getType()).dtype)) return {};
    const std::string first = evaluated(*choice->getTrueExpr(), state.ast);
    const std::string second = evaluated(*choice->getFalseExpr(), state.ast);
    return first.empty() ? second : second.empty() ? first : std::string();
}

Operand make_operand(const clang::Expr& value, const State& state) {
    Operand out;
    ElementType type = element_type(value.getType());
    if (type.dtype == DType::unknown) {
        // `&alpha` as const void*: the type behind the pointer is still known here.
        const ElementType written = element_type(value.IgnoreParenCasts()->getType());
        if (written.dtype != DType::unknown || type.shape == Shape::other) type = written;
    }
    out.dtype = type.dtype;
    out.shape = type.shape;
    out.text = spelling(value, state.ast);
    const clang::Expr* same = same_value(&value);
    out.name = Symbol(name_of_value(*same));
    out.param = unchanged_parameter(*resolved(same, state), state);
    const clang::Expr* source = resolved(same, state);
    out.call = call_behind(*source, state);
    out.constant = Symbol(constant_of(value, state));
    if (out.constant.empty() && is_float(type.dtype) && type.shape == Shape::scalar)
        out.alternative = Symbol(alternative_of(value, state));
    if (out.dtype == DType::unknown && out.shape == Shape::tensor && out.call != kNone)
        out.dtype = state.out.calls[static_cast<std::size_t>(out.call)].result.dtype;
    if (out.shape == Shape::options || is_scalar_type(before_conversions(&value)->getType()))
        out.dtype = dtype_named_by(value, state);
    if (has_statistics(type)) out.stat = state.flow.stat_of(value);
    return out;
}

}  // namespace mp::lint::walk
