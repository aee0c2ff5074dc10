#include "instrument/torch/op_info.hpp"

#include <algorithm>
#include <iterator>

#include "instrument/torch/test_hooks.hpp"

namespace mp::twin {
namespace {

using Names = std::initializer_list<std::string_view>;

bool in(Names names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// "aten::add_" -> "add".
std::string without_namespace(std::string_view qualified) {
    const std::size_t colon = qualified.rfind(':');
    std::string_view base = colon == std::string_view::npos ? qualified : qualified.substr(colon + 1);
    if (base.size() > 1 && base.back() == '_') base.remove_suffix(1);
    return std::string(base);
}

bool decides_shape(std::string_view base, std::string_view argument) {
    return in({"index", "index_put", "_index_put_impl", "_unsafe_index", "_unsafe_index_put"}, base)
               ? argument == "indices"
               : in({"masked_select", "masked_scatter"}, base) && argument == "mask";
}

// Libraries whose ops compute their results from their arguments alone, in any float dtype. What an op of another
// library does besides (communicate, count, require 16 bits) is not known, so the twin must not run it again.
bool runs_twice(std::string_view space) {
    return in({"aten", "quantized", "_quantized", "onednn", "mkldnn", "mkldnn_prepacked", "mkl", "prepacked",
               "sparse", "quantization", "torchvision", "torchaudio", "mp"},
              space);
}

// Recurrent layers of cuDNN and MIOpen draw their dropout from a tensor, which each forward moves on, undeclared.
constexpr std::string_view kDropoutState = "dropout_state";

bool draws_from_argument(const c10::OperatorHandle& op) {
    return std::ranges::any_of(op.schema().arguments(),
                               [](const c10::Argument& a) { return a.name() == kDropoutState; });
}

Rule rule_of(const c10::OperatorHandle& op, std::string_view space, std::string_view base, Traits traits) {
    if (space == "c10d") {
        if (in({"barrier", "monitored_barrier"}, base)) return Rule::no_shadow;
        if (in({"send", "recv", "recv_any_source"}, base)) return Rule::not_observed;
        return rule_disabled("collective") ? Rule::generic : Rule::collective;
    }
    if (!runs_twice(space)) return Rule::foreign;
    if (traits.has(Trait::samples)) return rule_disabled("random") ? Rule::generic : Rule::sampler;
    if (base == "native_dropout") return rule_disabled("dropout") ? Rule::generic : Rule::dropout;
    if (base == "_amp_foreach_non_finite_check_and_unscale")
        return rule_disabled("amp") ? Rule::generic : Rule::unscale;
    if (base == "_amp_update_scale") return Rule::follow_real;
    if (traits.has(Trait::by_index)) return Rule::by_index;
    // max and min over a dimension have indices; over everything they do not.
    if (traits.has(Trait::extremes) && op.schema().returns().size() == 2) return Rule::by_index;
    if (traits.has(Trait::no_twin)) return Rule::no_shadow;
    if (traits.has(Trait::leaks)) return Rule::leak;
    if (draws_from_argument(op)) return Rule::generic;
    if (draws_random(op)) return rule_disabled("sdpa") ? Rule::generic : Rule::random;
    return Rule::generic;
}

bool is_tensor_like(const c10::TypePtr& type) {
    if (type->isSubtypeOf(*c10::TensorType::get())) return true;
    if (auto optional = type->cast<c10::OptionalType>()) return is_tensor_like(optional->getElementType());
    if (auto list = type->cast<c10::ListType>()) return is_tensor_like(list->getElementType());
    return false;
}

bool is_dtype_name(std::string_view name) {
    return in({"dtype", "out_dtype", "output_dtype", "input_dtype"}, name);
}

Argument describe_argument(const c10::Argument& argument, std::size_t position, std::string_view space,
                           std::string_view base, Traits traits) {
    const std::string& name = argument.name();
    // c10d schemas declare no write, and those of 1.13 have no argument names: the written argument comes first.
    const bool collective_output = space == "c10d" && position == 0;
    Argument a;
    a.tensor = is_tensor_like(argument.type());
    a.generator = name == "generator";
    if (!a.tensor) {
        a.dtype = is_dtype_name(name) && !rule_disabled("dtype_arg");
        a.half_to_float = name == "half_to_float" && !rule_disabled("half_to_float");
        return a;
    }
    const bool declared = argument.alias_info() && argument.alias_info()->isWrite();
    const bool hidden = traits.has(Trait::hidden_stats) &&
                        (name == "running_mean" || name == "running_var") && !rule_disabled("hidden_mutator");
    const bool drawn_from = name == kDropoutState && !rule_disabled("dropout_state");
    a.write = declared || hidden || drawn_from || collective_output;
    a.out = declared && argument.kwarg_only();
    a.overwrite =
        a.write && !rule_disabled("overwrite") &&
        (a.out || (name == "self" && (traits.has(Trait::overwrites) || traits.has(Trait::samples))) ||
         (collective_output && !traits.has(Trait::in_place)));
    a.keep_real =
        (name == "found_inf" || name == "grad_scale" || name == "inv_scale") && !rule_disabled("amp");
    a.real_mask = decides_shape(base, name);
    return a;
}

bool declared_view(const c10::FunctionSchema& schema) {
    if (schema.returns().empty()) return false;
    for (const c10::Argument& result : schema.returns())
        if (!result.alias_info() || result.alias_info()->isWrite()) return false;
    return true;
}

// By the recorded name, because "native_layer_norm" is a norm too. Its mean of a normalised row is any number near 0.
bool of_one_element(std::string_view recorded) {
    static constexpr auto kOthers = {Trait::reduces, Trait::product,     Trait::norm, Trait::sum_step,
                                     Trait::fused,   Trait::whole_layer, Trait::loss};
    const Traits traits = traits_of_recorded(recorded);
    return std::ranges::none_of(kOthers, [&](Trait each) { return traits.has(each); });
}

}  // namespace

OpInfo describe(const c10::OperatorHandle& op) {
    const c10::FunctionSchema& schema = op.schema();
    OpInfo info;
    info.name = schema.name();
    info.base = without_namespace(schema.name());
    const std::string space = schema.name().substr(0, schema.name().find(':'));
    info.traits = space == "c10d" ? traits_of_collective(info.base) : traits_of(info.base);
    for (const c10::Argument& argument : schema.arguments()) {
        info.arguments.push_back(
            describe_argument(argument, info.arguments.size(), space, info.base, info.traits));
        info.writes |= info.arguments.back().write;
    }
    info.rule = rule_of(op, space, info.base, info.traits);
    info.is_view = info.traits.has(Trait::no_element) || (!info.writes && declared_view(schema));
    info.moves_bytes = info.traits.has(Trait::copies) && !rule_disabled("bytes");
    info.is_of_one_element = of_one_element(info.name);
    info.adds_two = info.base == "add" || info.base == "sub";
    info.updates_some =
        info.writes && in({"add", "lerp", "_foreach_add", "_foreach_lerp"}, std::string_view(info.base));
    info.may_hold_integers = info.base == "arange" || info.base == "_to_copy" || info.base == "copy";
    return info;
}

}  // namespace mp::twin
