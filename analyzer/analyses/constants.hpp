#pragma once

#include <vector>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// A numeric constant that becomes a low-precision value: through a cast, or as the scalar of an op
// on a low-precision tensor.
struct ConstantUse {
    const Function* function = nullptr;
    SourceSpan span;
    DType dtype = DType::unknown;  // the dtype that the constant is converted to
    double value = 0;
    Role role = Role::none;
    bool proven = false;      // the dtype holds on every path: no autocast region decides it
    bool tensor = false;      // the op computes wider and rounds its result
    std::vector<Note> notes;  // why the tensor has this dtype
    // Python: the call, the number (nullptr: the call's default), and the tensor or the dtype argument of a
    // factory.
    const Call* call = nullptr;
    const Operand* constant = nullptr;
    const Operand* met = nullptr;
    bool in_cast_model = false;  // the dtype holds where a whole model is cast, as the notes say
};

const std::vector<ConstantUse>& constant_uses(const RuleContext&);

// Python: numbers beyond fp16 that a module's forward fills into tensors whose dtype is its inputs' or
// its layers', and not known otherwise, where the same package casts a model of any class to fp16.
std::vector<ConstantUse> overflows_in_cast_models(const RuleContext&);

}  // namespace mp::lint
