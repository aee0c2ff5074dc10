#pragma once

// The words for the enumerators of the facts model, in facts text and in messages.

#include <array>
#include <string_view>

#include "analyzer/facts/model.hpp"

namespace mp::lint {

constexpr auto names_of(Shape) {
    return std::to_array<std::string_view>({"scalar", "vec", "pointer", "array", "tensor", "options",
                                            "object", "other", "module", "parameters", "dtype"});
}
constexpr auto names_of(Stat) {
    return std::to_array<std::string_view>({"none", "sum", "sum_of_squares", "mean", "variance", "rstd"});
}
constexpr auto names_of(CallKind) {
    return std::to_array<std::string_view>(
        {"function", "method", "constructor", "destructor", "kernel", "op", "assembly"});
}
constexpr auto names_of(CastForm) {
    return std::to_array<std::string_view>({"implicit", "explicit", "intrinsic", "assign", "reinterpret"});
}
constexpr auto names_of(Purpose) {
    return std::to_array<std::string_view>(
        {"none", "init", "store", "operand", "argument", "result", "accumulate"});
}
constexpr auto names_of(Role) {
    return std::to_array<std::string_view>(
        {"none", "added", "clamp", "max_identity", "mask_fill", "divisor", "multiplier", "compared"});
}
constexpr auto names_of(AccumulateOp) {
    return std::to_array<std::string_view>({"add", "fma", "subtract", "multiply", "max", "min", "other"});
}
constexpr auto names_of(AccumulateForm) {
    return std::to_array<std::string_view>({"compound", "assign", "call", "tree", "member"});
}
constexpr auto names_of(Storage) {
    return std::to_array<std::string_view>({"local", "array", "shared", "global", "member", "parameter"});
}
constexpr auto names_of(FunctionKind) {
    return std::to_array<std::string_view>({"host", "device", "host_device", "kernel", "lambda", "python"});
}
constexpr auto names_of(Language) { return std::to_array<std::string_view>({"cpp", "cuda", "python"}); }
constexpr auto names_of(UnitState) {
    return std::to_array<std::string_view>({"ok", "partial", "failed", "timeout", "crashed"});
}

template <class E>
concept NamedEnum = requires(E e) { names_of(e); };

// "?" for a value that is not an enumerator.
template <NamedEnum E>
constexpr std::string_view word_for(E e) {
    constexpr auto names = names_of(E{});
    const auto index = static_cast<std::size_t>(e);
    return index < names.size() ? names[index] : "?";
}

template <class E, E last>
inline constexpr bool kAllNamed = names_of(E{}).size() == static_cast<std::size_t>(last) + 1;

static_assert(kAllNamed<Shape, Shape::dtype> && kAllNamed<Stat, Stat::rstd> &&
              kAllNamed<CallKind, CallKind::assembly> && kAllNamed<CastForm, CastForm::reinterpret> &&
              kAllNamed<Purpose, Purpose::accumulate> && kAllNamed<Role, Role::compared> &&
              kAllNamed<AccumulateOp, AccumulateOp::other> &&
              kAllNamed<AccumulateForm, AccumulateForm::member> && kAllNamed<Storage, Storage::parameter> &&
              kAllNamed<FunctionKind, FunctionKind::python> && kAllNamed<Language, Language::python> &&
              kAllNamed<UnitState, UnitState::crashed>);

}  // namespace mp::lint
