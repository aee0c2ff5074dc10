#pragma once

#include <vector>

#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// A numeric constant that becomes a low-precision value: through a cast, or as the scalar of an op
// on a low-precision tensor.
struct ConstantUse {
    const Function* function = nullptr;
    SourceSpan span;
    DType dtype = DType::unknown;  // what it becomes
    double value = 0;
    Role role = Role::none;
    bool proven = false;      // the dtype holds on every path: no autocast region decides it
    bool tensor = false;      // the op computes wider and rounds its result
    std::vector<Note> notes;  // why the tensor has this dtype
};

std::vector<ConstantUse> constant_uses(const RuleContext&);

}  // namespace mp::lint
