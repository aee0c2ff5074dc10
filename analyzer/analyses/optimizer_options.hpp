#pragma once

// The options of the program's own optimizers: what their methods read from a group of parameters, and the defaults
// that their constructors give.

#include <cstddef>
#include <optional>

#include "analyzer/analyses/context.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {

struct OptimizerOption {
    const Function* init = nullptr;   // the constructor
    const Operand* given = nullptr;   // what it gives the option; nullptr: the operand is not known to be one
    std::optional<std::size_t> item;  // of what is given: 1 for `beta2` of `beta1, beta2 = group["betas"]`
};

// group["eps"], or a name that a method of an optimizer has read from there.
OptimizerOption optimizer_option(const Classes&, const Function&, const Operand&);

// The low dtype of such an option, which some caller of the constructor passes or leaves to the default; unknown where
// there is none, or where nothing in the program makes the optimizer, unless others can install it.
TensorDType low_dtype_of_option(const RuleContext&, const Function&, const Operand&);

}  // namespace mp::lint
