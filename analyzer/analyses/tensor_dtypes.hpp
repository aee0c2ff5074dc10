#pragma once

// The dtype of a tensor where it is used, as far as facts and policies show it: through ops that keep
// their input's dtype, through ops that an autocast region casts, and through the program's own
// functions.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/fact_key.hpp"

namespace mp::lint {

class ModuleDTypes;

struct TensorDType {
    DType dtype = DType::unknown;
    bool proven = true;       // it holds on every path that is known
    bool output = false;      // of a model whose code is not known: its last op may have cast it
    bool of_model = false;    // ... or what was read of it, or passed on
    std::vector<Note> chain;  // the calls it came through, outermost first
};

class TensorDTypes {
public:
    explicit TensorDTypes(const RuleContext& context) : context_(context) {}

    TensorDType of(const Function&, const Operand&);

    // What a model returns has the dtype of its parameters, wherever it was cast or loaded.
    void ask(ModuleDTypes& modules) { modules_ = &modules; }

private:
    TensorDType of_result(const Function&, const Call&);
    TensorDType of_op(const Function&, const Call&);
    TensorDType of_returned(const Function& callee);
    template <typename Find>
    TensorDType of_returned(const Function& callee, Find find);
    TensorDType of_item(const Function&, const Item&);
    TensorDType of_module_operand(const Function&, const Operand& module, const Call& at);
    TensorDType of_candidates(const Function&, const Call&);
    TensorDType of_kept(const Function&, const Operand&);
    TensorDType of_earlier_value(const Function&, const Operand&);
    TensorDType of_output(const Function&, const Operand&);
    TensorDType of_forward(const Function&, const Call&);
    TensorDType of_sequential(const Function&, const Call&, const Context& region);
    TensorDType of_parameter(const Function&, std::int32_t param);
    bool is_passed_number(const Function&, const Operand&) const;
    bool is_test(Symbol file) const;
    TensorDType of_inputs(const Function&, const Call&, std::vector<DType>* inputs);

    // Answers are kept, and one that is being looked for is unknown: recursion in the program ends
    // there.
    template <typename Find>
    TensorDType once(const void* key, std::int32_t index, Find find);

    // What an op's name alone determines, computed once per op.
    struct OpTraits {
        bool is_known = false;
        bool takes_several = false;  // tensors
    };
    const OpTraits& traits(Op);

    const RuleContext& context_;
    ModuleDTypes* modules_ = nullptr;
    FactMap<TensorDType> known_;
    std::unordered_map<Symbol, OpTraits> traits_;
    // The calls whose results have a name, in order, by function.
    std::unordered_map<const Function*, std::unordered_map<Symbol, std::vector<const Call*>>> results_;
    int depth_ = 0;
};

}  // namespace mp::lint
