#include "analyzer/clang/calls.hpp"

#include <algorithm>

#include "analyzer/clang/casts.hpp"
#include "analyzer/clang/operands.hpp"
#include "analyzer/clang/types.hpp"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/Stmt.h"
#include "llvm/ADT/StringSwitch.h"

namespace mp::lint::walk {
namespace {

// Functions whose result has the dtype of their first operand, inside and outside of autocast.
bool keeps_dtype(std::string_view name) {
    const std::size_t at = name.rfind("::");
    return llvm::StringSwitch<bool>(at == std::string_view::npos ? name : name.substr(at + 2))
        .Cases("clone", "contiguous", "detach", "view", "reshape", "transpose", "permute", "t", "squeeze",
               true)
        .Cases("unsqueeze", "flatten", "expand", "expand_as", "slice", "select", "narrow", "view_as", true)
        .Cases("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like", true)
        .Cases("cuda", "cpu", "pin_memory", "requires_grad_", "set_requires_grad", "to", "options", true)
        .Cases("dtype", "scalar_type", "device", "layout", "index_select", "gather", "repeat", true)
        .Default(false);
}

bool is_tensor_like(const Operand& o) { return o.shape == Shape::tensor || o.shape == Shape::options; }

Operand tensor_result(const Call& call, const clang::Expr& e, const Callee& callee, const State& state,
                      llvm::ArrayRef<const clang::Expr*> arguments) {
    if (e.getType()->isVoidType() && !callee.library) return {};
    const ElementType type =
        e.getType()->isVoidType() ? ElementType{DType::unknown, Shape::scalar} : element_type(e.getType());
    Operand result;
    result.dtype = type.dtype;
    result.shape = type.shape;
    if (!callee.library || type.dtype != DType::unknown) return result;
    for (std::size_t i = call.kind == CallKind::method ? 1 : 0; i < arguments.size(); ++i)
        if (const DType named = dtype_named_by(*arguments[i], state); named != DType::unknown)
            result.dtype = named;
    if (result.dtype != DType::unknown || call.args.empty()) return result;
    const std::string_view name = callee.name.str();
    if (name.ends_with("::type_as") ||
        (name.ends_with("::to") && call.args.size() > 1 && is_tensor_like(call.args[1])))
        result.dtype = call.args.size() > 1 ? call.args[1].dtype : DType::unknown;
    else if (is_tensor_like(call.args[0]) &&
             (callee.in_place || keeps_dtype(name) ||
              (call.args[0].shape == Shape::options && result.shape == Shape::options)))
        result.dtype = call.args[0].dtype;
    return result;
}

Call new_call(CallKind kind, const SourceSpan& span, Symbol name, Symbol callee = {}) {
    Call call;
    call.span = span;
    call.kind = kind;
    call.name = name;
    call.callee = callee;
    return call;
}

const clang::Expr* before_wrapping(const clang::Expr* e) {
    for (;;) {
        e = same_value(e);
        const auto* made = llvm::dyn_cast<clang::CXXConstructExpr>(e);
        if (!made || made->getNumArgs() == 0) return e;
        e = made->getArg(0);
    }
}

// The function that a class has as a template argument: TORCH_FN(f).
const clang::FunctionDecl* function_in_type(clang::QualType type) {
    const auto* record = type->getAsCXXRecordDecl();
    const auto* instance = llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(record);
    if (!instance || !in_system_header(*instance)) return nullptr;
    for (const clang::TemplateArgument& argument : instance->getTemplateArgs().asArray())
        if (argument.getKind() == clang::TemplateArgument::Declaration)
            return llvm::dyn_cast<clang::FunctionDecl>(argument.getAsDecl());
    return nullptr;
}

// Lambdas and functions given as arguments: the callee may call them.
void add_callables(const clang::Expr& argument, Call& call, State& state) {
    const clang::Expr* e = before_wrapping(&argument);
    if (const auto* closure = closure_of(e->getType())) {
        if (const auto* generic = closure->getDependentLambdaCallOperator())
            for (const auto* instance : generic->specializations())
                call.lambdas.push_back(state.usrs.of(*instance));
        else if (const auto* body = closure->getLambdaCallOperator())
            call.lambdas.push_back(state.usrs.of(*body));
        return;
    }
    if (const auto* carried = function_in_type(e->getType()); carried && !in_system_header(*carried)) {
        call.lambdas.push_back(state.usrs.of(*carried));
        return;
    }
    e = e->IgnoreParenCasts();
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(e))
        if (unary->getOpcode() == clang::UO_AddrOf) e = unary->getSubExpr()->IgnoreParenCasts();
    const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(e);
    const auto* function = ref ? llvm::dyn_cast<clang::FunctionDecl>(ref->getDecl()) : nullptr;
    if (function && !in_system_header(*function)) call.lambdas.push_back(state.usrs.of(*function));
}

bool takes_callable(llvm::ArrayRef<const clang::Expr*> arguments) {
    return std::ranges::any_of(
        arguments, [](const clang::Expr* a) { return closure_of(before_wrapping(a)->getType()); });
}

void finish(Call call, const clang::Stmt& at, llvm::ArrayRef<const clang::Expr*> arguments, State& state) {
    call.loop_depth = state.loop_depth;
    for (const clang::Expr* argument : arguments) add_callables(*argument, call, state);
    state.call_of[&at] = static_cast<std::int32_t>(state.out.calls.size());
    state.made_by.push_back(&at);
    state.out.calls.push_back(std::move(call));
}

llvm::SmallVector<const clang::Expr*, 8> written_arguments(const clang::CallExpr& e) {
    llvm::SmallVector<const clang::Expr*, 8> out;
    if (const auto* member = llvm::dyn_cast<clang::CXXMemberCallExpr>(&e))
        if (const clang::Expr* object = member->getImplicitObjectArgument()) out.push_back(object);
    for (const clang::Expr* argument : e.arguments())
        if (!llvm::isa<clang::CXXDefaultArgExpr>(argument)) out.push_back(argument);
    return out;
}

CallKind kind_of(const clang::CallExpr& e, const clang::FunctionDecl* callee, bool on_tensors) {
    if (llvm::isa<clang::CUDAKernelCallExpr>(&e)) return CallKind::kernel;
    if (llvm::isa<clang::CXXOperatorCallExpr>(&e) && on_tensors) return CallKind::op;
    if (llvm::isa<clang::CXXMemberCallExpr>(&e)) return CallKind::method;
    const auto* method = llvm::dyn_cast_or_null<clang::CXXMethodDecl>(callee);
    return method && method->isInstance() ? CallKind::method : CallKind::function;
}

// A call through a pointer: the callee is unknown, but the call is recorded.
void add_indirect(const clang::CallExpr& e, State& state) {
    const clang::Expr* callee = e.getCallee()->IgnoreParenImpCasts();
    if (llvm::isa<clang::CXXPseudoDestructorExpr>(callee) || e.isTypeDependent() || e.containsErrors())
        return;
    std::string name = name_of_value(*callee);
    if (name.empty()) name = spelling(*callee, state.ast).str();
    Call call = new_call(CallKind::function, span_of(e.getSourceRange(), state.ast), Symbol(name));
    if (!e.getType()->isVoidType()) {
        const ElementType type = element_type(e.getType());
        call.result.dtype = type.dtype;
        call.result.shape = type.shape;
    }
    call.macro = macro_at(callee->getExprLoc(), state.ast);
    const auto arguments = written_arguments(e);
    for (const clang::Expr* argument : arguments) call.args.push_back(make_operand(*argument, state));
    finish(std::move(call), e, arguments, state);
}

bool is_on_tensors(llvm::ArrayRef<const clang::Expr*> arguments) {
    return std::ranges::any_of(
        arguments, [](const clang::Expr* a) { return element_type(a->getType()).shape == Shape::tensor; });
}

std::string operator_name(clang::OverloadedOperatorKind kind) {
    return std::string("operator") + clang::getOperatorSpelling(kind);
}

// std::make_unique<Guard>(true): the constructor that it calls, if the number of arguments determines it.
const clang::CXXConstructorDecl* made_by_factory(const clang::FunctionDecl& callee, std::size_t arguments) {
    if (!callee.isInStdNamespace() || !callee.getIdentifier()) return nullptr;
    if (callee.getName() != "make_unique" && callee.getName() != "make_shared") return nullptr;
    const auto* list = callee.getTemplateSpecializationArgs();
    if (!list || list->size() == 0 || list->get(0).getKind() != clang::TemplateArgument::Type) return nullptr;
    const auto* record = list->get(0).getAsType()->getAsCXXRecordDecl();
    if (!record || !record->hasDefinition() || in_system_header(*record)) return nullptr;
    const clang::CXXConstructorDecl* found = nullptr;
    for (const auto* constructor : record->ctors()) {
        if (constructor->isCopyOrMoveConstructor() || !constructor->isUserProvided()) continue;
        if (arguments < constructor->getMinRequiredArguments() || arguments > constructor->getNumParams())
            continue;
        if (found) return nullptr;
        found = constructor;
    }
    return found;
}

}  // namespace

void add_call(const clang::CallExpr& e, State& state) {
    const clang::FunctionDecl* function = e.getDirectCallee();
    if (!function) return add_indirect(e, state);
    const auto arguments = written_arguments(e);
    const Callee& known = state.callees.of(*function);
    if (!known.kept && !takes_callable(arguments)) return;
    if (const auto* made = made_by_factory(*function, arguments.size())) {
        Call call = new_call(CallKind::constructor, span_of(e.getSourceRange(), state.ast),
                             Symbol(qualified_name(*made)), state.usrs.of(*made));
        for (const clang::Expr* argument : arguments) call.args.push_back(make_operand(*argument, state));
        call.result.shape = Shape::object;
        call.macro = macro_at(e.getExprLoc(), state.ast);
        return finish(std::move(call), e, arguments, state);
    }
    // Arithmetic of half classes is recorded as casts and accumulations, not as calls.
    if (!known.user && llvm::isa<clang::CXXOperatorCallExpr>(&e) && is_half_class(e.getArg(0)->getType()))
        return;
    if (!known.user && llvm::isa<clang::CXXConversionDecl>(function)) return;
    const bool on_tensors = is_on_tensors(arguments) && !known.user;
    Call call = new_call(kind_of(e, function, on_tensors), span_of(e.getSourceRange(), state.ast), known.name,
                         known.usr.empty() ? state.usrs.of(*function) : known.usr);
    call.op = known.op;
    call.template_args = known.template_args;
    if (call.kind == CallKind::op) {
        if (function->getOverloadedOperator() == clang::OO_Equal) return;
        call.name = Symbol(operator_name(function->getOverloadedOperator()));
    }
    call.in_place = known.in_place;
    call.macro = macro_at(e.getCallee()->getExprLoc(), state.ast);
    for (const clang::Expr* argument : arguments) call.args.push_back(make_operand(*argument, state));
    call.result = tensor_result(call, e, known, state, arguments);
    if (is_float(call.result.dtype) && call.result.shape == Shape::scalar)
        call.result.stat = state.flow.stat_of(e);
    finish(std::move(call), e, arguments, state);
}

void add_constructor(const clang::CXXConstructExpr& e, State& state) {
    const clang::CXXConstructorDecl* constructor = e.getConstructor();
    if (constructor->isTrivial() || constructor->isCopyOrMoveConstructor() || !constructor->isUserProvided())
        return;
    const Callee& known = state.callees.of(*constructor);
    if (!known.kept || is_half_class(e.getType())) return;
    Call call =
        new_call(CallKind::constructor, span_of(e.getSourceRange(), state.ast), known.name, known.usr);
    call.op = known.op;
    call.template_args = known.template_args;
    llvm::SmallVector<const clang::Expr*, 8> arguments;
    for (const clang::Expr* argument : e.arguments())
        if (!llvm::isa<clang::CXXDefaultArgExpr>(argument)) arguments.push_back(argument);
    for (const clang::Expr* argument : arguments) call.args.push_back(make_operand(*argument, state));
    const ElementType type = element_type(e.getType());
    call.result.dtype = type.dtype;
    call.result.shape = type.shape;
    call.macro = macro_at(e.getExprLoc(), state.ast);
    finish(std::move(call), e, arguments, state);
}

void add_assembly(const clang::GCCAsmStmt& e, State& state) {
    Call call = new_call(CallKind::assembly, span_of(e.getSourceRange(), state.ast), Symbol("asm"));
    Operand text;
    text.shape = Shape::other;
    text.constant = Symbol(std::string_view(e.getAsmString()->getString()));
    call.args.push_back(text);
    for (unsigned i = 0; i < e.getNumOutputs(); ++i)
        call.args.push_back(make_operand(*e.getOutputExpr(i), state));
    for (unsigned i = 0; i < e.getNumInputs(); ++i)
        call.args.push_back(make_operand(*e.getInputExpr(i), state));
    call.macro = macro_at(e.getAsmLoc(), state.ast);
    finish(std::move(call), e, {}, state);
}

std::vector<Call> destructor_calls(const clang::CXXRecordDecl& record, const Operand& object,
                                   const SourceSpan& span, State& state) {
    std::vector<Call> out;
    for (const auto* destructor : destructors_of(record)) {
        Call call = new_call(CallKind::destructor, span, Symbol(qualified_name(*destructor)),
                             state.usrs.of(*destructor));
        call.args.push_back(object);
        out.push_back(std::move(call));
    }
    return out;
}

void add_delete(const clang::CXXDeleteExpr& e, State& state) {
    const clang::QualType type = e.getDestroyedType();
    const auto* record = type.isNull() ? nullptr : type->getAsCXXRecordDecl();
    if (!record) return;
    const Operand object = make_operand(*e.getArgument(), state);
    for (Call& call : destructor_calls(*record, object, span_of(e.getSourceRange(), state.ast), state))
        finish(std::move(call), e, {}, state);
}

}  // namespace mp::lint::walk
