#pragma once

// The dtype of a module's parameters at a place in a Python program, where the module was cast elsewhere: in
// another method, function or file, in place or when it was loaded.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/analyses/tensor_dtypes.hpp"
#include "analyzer/region/classes.hpp"

namespace mp::lint {

struct ModuleDType : TensorDType {
    // Loaded here without a dtype, or with "auto": the checkpoint decides. nullptr when something else does.
    const Call* loaded = nullptr;
    bool known() const { return dtype != DType::unknown || loaded; }
    bool is_auto() const;  // loaded with dtype="auto"
};

// The argument of from_pretrained() for the dtype, under its old or its new name; nullptr: none.
const Operand* dtype_of_load(const Call&);

// Whose dtype: of the parameters that are trained, or of what the module returns. Adapters and the upcasts of quantised
// models decide the first alone.
enum class DTypeOf { trained, output };

class ModuleDTypes {
public:
    explicit ModuleDTypes(const RuleContext&, DTypeOf = DTypeOf::trained);
    ModuleDTypes(const ModuleDTypes&) = delete;
    ModuleDTypes& operator=(const ModuleDTypes&) = delete;

    // The dtype of the module's parameters when the call `at` runs. `proven` if the last cast runs on every path to
    // `at`.
    ModuleDType of_module(const Function&, const Operand& module, const Call& at);
    // The dtype of a list of tensors, as torch._foreach_ functions take it.
    TensorDType of_list(const Function&, const Operand& list, const Call& at);
    // The dtype of a tensor: that of its module, if it belongs to one.
    TensorDType of_tensor(const Function&, const Operand& tensor, const Call& at);

    // The dtype of self.scale, a parameter or buffer of the method's own module: that of the module, if it is low.
    TensorDType of_member(const Function&, const Operand& tensor);

    TensorDTypes& tensors() { return tensors_; }

private:
    // Calls, callers and attributes that are followed from one place, in all.
    static constexpr int kFarthest = 8;
    // By function, and name or parameter of the module.
    using Answers = std::map<std::tuple<const Function*, Symbol, std::int32_t>, ModuleDType>;
    template <typename Find>
    ModuleDType once(Answers&, const Function&, const Operand& module, Find);
    bool is_member(const Function&, const Operand& tensor);
    TensorDType of_item(const Function&, const Operand& tensor);
    TensorDType of_passed(const Function&, std::int32_t param);
    template <typename Of, typename Take>
    void for_each_passed(const Function&, std::int32_t param, const Of&, Take);
    // What a caller passes for a parameter.
    using PassedDType = std::function<TensorDType(const Function& caller, const Operand&, const Call&)>;
    TensorDType first_low_passed(const Function&, std::int32_t param, const PassedDType&);
    ModuleDType state(const Function&, const Operand& module, std::size_t before, int left);
    ModuleDType of_branches(const Function&, Symbol name, std::size_t before, int left);
    ModuleDType last_event(const Function&, const Operand& module, std::size_t first, std::size_t before,
                           int left);
    ModuleDType event(const Function&, const Call&, const Operand& module, int left);
    ModuleDType cast_by(const Function&, const Call&);
    ModuleDType cast_in_apply(const Call&) const;
    TensorDType by_setting(const Function&, const Operand&, int left);
    ModuleDType of_parts(const Function& init, int left);
    ModuleDType by_default(const Function&, std::size_t before, int left);
    ModuleDType default_set(const Function&, const Call& sets);
    ModuleDType assigned_in_class(const Function&, const Operand& module, int left);
    ModuleDType of_part_made(const Function&, const Operand& owner, const Operand& part, int left);
    std::optional<Operand> owner_of(const Function&, const Operand& part, std::size_t before) const;
    ModuleDType after(const Function& callee, const Operand& module, int left);
    ModuleDType made_by(const Function&, const Call& origin, int left);
    ModuleDType items_of(const Function&, const Call& display, int left);
    ModuleDType loaded_as(const Function&, const Call&);
    ModuleDType returned_by(const Function& callee, int left,
                            const std::function<const Operand*(const Operand&)>& part);
    ModuleDType of_parameter(const Function&, std::int32_t param, int left);
    ModuleDType of_attribute(const Function&, const Operand& module, int left);

    bool upcasts_trained(std::string_view name) const;

    const RuleContext& context_;
    DTypeOf of_;
    TensorDTypes tensors_;
    const Classes& classes_;
    std::optional<std::unordered_set<const Function*>> sets_default_;  // functions that set the default dtype
    std::unordered_map<Symbol, std::unordered_set<Symbol>> members_;   // tensors of modules, by class
    Answers after_;                                                    // what functions leave of modules
    Answers outside_;  // what parameters and attributes are when a function begins
    std::map<std::pair<const Function*, std::int32_t>, TensorDType> passed_;  // tensors that callers pass
};

}  // namespace mp::lint
