// The dtypes of single tensors of modules, and of lists of them.

#include <algorithm>
#include <string>
#include <utility>

#include "analyzer/analyses/arguments.hpp"
#include "analyzer/analyses/module_dtypes.hpp"
#include "analyzer/analyses/module_operands.hpp"
#include "analyzer/analyses/support.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/object_classes.hpp"

namespace mp::lint {
namespace {

// `p` of p.data
Operand without_data(const Function& f, const Operand& tensor) {
    constexpr std::string_view kData = ".data";
    const std::string_view name = tensor.name.str();
    if (!name.ends_with(kData)) return tensor;
    const Symbol owner(name.substr(0, name.size() - kData.size()));
    const auto param = std::ranges::find(f.params, owner, &Parameter::name);
    return param == f.params.end() ? attribute(owner)
                                   : parameter(f, static_cast<std::size_t>(param - f.params.begin()));
}

}  // namespace

// Whether the class registers this attribute as a parameter or a buffer: a cast of the module changes it.
bool ModuleDTypes::is_member(const Function& f, const Operand& tensor) {
    if (f.parent_class.empty() || !is_attribute_of_self(tensor)) return false;
    const auto [entry, is_new] = members_.try_emplace(f.parent_class);
    std::unordered_set<Symbol>& members = entry->second;
    if (is_new)
        for (const Function* method : classes_.methods(f.parent_class))
            for (const Call& call : method->calls) {
                const std::string_view name = leaf(call.name.str());
                if (name == "register_buffer" && call.args.size() >= 2)
                    members.emplace("self." + std::string(spelled(call.args[1])));
                if (name == "Parameter" && call.result.name.str().starts_with("self."))
                    members.insert(call.result.name);
            }
    return members.contains(tensor.name);
}

TensorDType ModuleDTypes::of_member(const Function& f, const Operand& tensor) {
    if (!is_member(f, tensor) || f.params.empty()) return {};
    TensorDType owner = state(f, parameter(f, 0), 0, kFarthest);
    owner.proven = false;  // it may have been cast by itself
    return is_low_precision(owner.dtype) ? owner : TensorDType{};
}

TensorDType ModuleDTypes::of_list(const Function& f, const Operand& list, const Call& at) {
    if (list.dtype != DType::unknown) return tensors_.of(f, list);
    const Call* made = call_of(f, list);
    if (made && made->kind == CallKind::constructor && made->args.size() == 1)
        return of_tensor(f, made->args.front(), *made);
    const std::vector<ListedModule> sources = modules_in(context_, f, list);
    if (sources.size() != 1) return {};
    return of_module(*sources[0].function, *sources[0].module,
                     sources[0].function == &f ? at : *sources[0].at);
}

TensorDType ModuleDTypes::of_tensor(const Function& f, const Operand& tensor, const Call& at) {
    if (is_member(f, tensor)) {
        ModuleDType owner = of_module(f, parameter(f, 0), at);
        if (is_low_precision(owner.dtype)) return owner;
    }
    TensorDType found = tensors_.of(f, tensor);
    if (found.dtype != DType::unknown) return found;
    const Call* listing = listing_of(f, tensor);
    if (!listing) return of_item(f, without_data(f, same_tensor(f, tensor)));
    if (listing->args.empty()) return found;
    const Operand* module = &listing->args.front();
    if (const Call* state = call_of(f, *module); state && leaf(state->name.str()) == "state_dict")
        module = &state->args.front();
    return of_module(f, *module, at);
}

// `p` of `for p in params`, where callers pass the list of tensors, or the constructor keeps it; and a tensor that
// callers pass.
TensorDType ModuleDTypes::of_item(const Function& f, const Operand& tensor) {
    const auto list = list_of(f, tensor);
    if (!list) return tensor.param == kNone ? TensorDType{} : of_passed(f, tensor.param);
    if (list->param != kNone)
        return first_low_passed(f, list->param,
                                [&](const Function& caller, const Operand& argument, const Call& call) {
                                    return of_list(caller, argument, call);
                                });
    if (!is_attribute_of_self(*list) || f.parent_class.empty()) return {};
    const auto [init, value] = classes_.kept(f.parent_class, list->name);
    if (!value || init->calls.empty()) return {};
    TensorDType kept = of_list(*init, *value, init->calls.back());
    kept.proven = false;  // other methods may change the list
    return kept;
}

// An answer that is being looked for is unknown, which ends the recursion.
TensorDType ModuleDTypes::of_passed(const Function& f, std::int32_t param) {
    const auto [entry, is_new] = passed_.try_emplace({&f, param});
    if (is_new)
        entry->second = first_low_passed(
            f, param, [&](const Function& caller, const Operand& argument, const Call& call) {
                return of_tensor(caller, argument, call);
            });
    return entry->second;
}

}  // namespace mp::lint
