#pragma once

// What is known about the value of an expression at its place in the code.

#include <array>

#include "analyzer/facts/model.hpp"
#include "analyzer/python/syntax.hpp"

namespace mp::lint::python {

inline Operand make_operand(Shape shape, DType dtype = DType::unknown) {
    Operand operand;
    operand.shape = shape;
    operand.dtype = dtype;
    return operand;
}

inline Call make_call(const SourceSpan& span, CallKind kind, Symbol name = {}, Symbol callee = {}) {
    Call call;
    call.span = span;
    call.kind = kind;
    call.name = name;
    call.callee = callee;
    call.result.shape = Shape::other;
    return call;
}

// Whether `refers` is about an argument or a call of the function itself: "#0.dtype", "@3.dtype".
inline bool is_local(Symbol refers) { return refers.str().starts_with('#') || refers.str().starts_with('@'); }

// Makes the operand valid in another function than the one that evaluated it.
inline void detach(Operand& operand) {
    operand.call = operand.param = kNone;
    if (is_local(operand.refers)) operand.refers = {};
}

struct Value {
    Operand is = make_operand(Shape::other);
    // The qualified name of the value, when it is a module, a class, a function or another named thing:
    // "torch.nn", "torch.nn.Linear", "pkg.train.step".
    Symbol entity{};
    Symbol object{};            // the class that it is an instance of: "torch.amp.GradScaler"
    bool callable = false;      // the entity is a function or lambda of this project
    bool is_class = false;      // the entity is a class of this project
    bool is_self = false;       // the first parameter of a method
    bool is_super = false;      // super(): methods are looked up in the bases after `object`
    Symbol makes_region{};      // partial(torch.autocast, dtype=...): torch.autocast
    Symbol region_condition{};  // `autocast if amp else nullcontext`: its call makes a region if amp is ...
    bool region_when = true;    // ... this
    std::int32_t contexts = kNone;  // in File::choices: the calls that may have made it
    Node display{};                 // the literal dictionary or tuple
    // The calls of both branches of `A() if c else B()`.
    std::array<std::int32_t, 2> branches{kNone, kNone};
};

// One call that may have made an object, and when.
struct Choice {
    Call made;                  // without the parts that only its own function could resolve
    std::int32_t call = kNone;  // in `owner`
    std::uint32_t owner = 0;    // number of the builder of the function that contains the call
    Symbol condition{};         // empty: always
    bool when = true;
};

}  // namespace mp::lint::python
