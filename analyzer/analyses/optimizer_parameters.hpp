#pragma once

// Where the optimizers of a Python program are made, and the dtype of the parameters that they are made over.

#include <vector>

#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/protocol_events.hpp"

namespace mp::lint {

struct MadeOptimizer {
    const Function* function = nullptr;
    const Call* call = nullptr;

    friend bool operator==(const MadeOptimizer&, const MadeOptimizer&) = default;
};

class OptimizerParameters {
public:
    explicit OptimizerParameters(const RuleContext&);

    // What the function names so can be made by each of these calls: here, in a function that returns it, in what
    // callers pass, in another method of the class, or at the head of the file.
    std::vector<MadeOptimizer> makers_of(const Function& user, Symbol optimizer) const;
    // Unknown where two of them differ, proven where all are.
    TensorDType of(const Function& user, Symbol optimizer);
    TensorDType of(const MadeOptimizer&);

private:
    void find(const Function&, const Operand& value, int left, std::vector<MadeOptimizer>& found) const;
    void find_passed(const Function&, std::int32_t param, int left, std::vector<MadeOptimizer>& found) const;
    void find_named(const Function&, Symbol name, int left, std::vector<MadeOptimizer>& found) const;
    void find_of_call(const Function&, const Call&, int left, std::vector<MadeOptimizer>& found) const;
    void find_in_class(const Function&, Symbol attribute, int left, std::vector<MadeOptimizer>& found) const;
    TensorDType of_module(const Function&, const Operand& module, const Call& at);

    const RuleContext& context_;
    const Roles& roles_;
    ModuleDTypes modules_;
};

}  // namespace mp::lint
