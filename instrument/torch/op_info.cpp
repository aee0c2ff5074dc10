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

// "aten::add_" -> "add". Sources of the lists below: native_functions.yaml of 1.13 and 2.11, c10d/Ops.cpp.
std::string base_name(std::string_view qualified) {
    const std::size_t colon = qualified.rfind(':');
    std::string_view base = colon == std::string_view::npos ? qualified : qualified.substr(colon + 1);
    if (base.size() > 1 && base.back() == '_') base.remove_suffix(1);
    return std::string(base);
}

bool is_sampler(std::string_view base) {
    return in({"bernoulli",        "normal",      "normal_functional", "uniform",
               "random",           "exponential", "geometric",         "log_normal",
               "cauchy",           "multinomial", "randperm",          "poisson",
               "binomial",         "rand",        "rand_like",         "randn",
               "randn_like",       "randint",     "randint_like",      "_standard_gamma",
               "_sample_dirichlet"},
              base);
}

// Running statistics that schemas do not annotate as written.
bool is_hidden_mutator(std::string_view base) {
    return in({"native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm_update_stats",
               "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts", "_batch_norm_impl_index",
               "batch_norm", "instance_norm"},
              base);
}

bool overwrites_self(std::string_view base) {
    return is_sampler(base) || in({"copy", "zero", "fill", "_foreach_copy", "_foreach_zero", "set_data",
                                   "_copy_from", "_foreach_fill"},
                                  base);
}

bool moves_bytes(std::string_view base) {
    return in({"copy", "_foreach_copy", "clone", "cat", "split_with_sizes_copy", "_chunk_cat", "contiguous",
               "slice_copy", "narrow_copy", "_allgather_base", "allgather", "allgather_into_tensor_coalesced",
               "allgather_coalesced", "broadcast", "alltoall", "alltoall_base", "scatter", "gather"},
              base);
}

bool decides_shape(std::string_view base, std::string_view argument) {
    return in({"index", "index_put", "_index_put_impl", "_unsafe_index", "_unsafe_index_put"}, base)
               ? argument == "indices"
               : in({"masked_select", "masked_scatter"}, base) && argument == "mask";
}

// These change their tensors in place; every other collective has outputs apart from its inputs.
bool is_in_place_collective(std::string_view base) {
    return in({"allreduce", "allreduce_coalesced", "broadcast", "reduce"}, base);
}

Rule rule_of(const c10::OperatorHandle& op, std::string_view space, std::string_view base) {
    if (space == "c10d") {
        if (in({"barrier", "monitored_barrier"}, base)) return Rule::no_shadow;
        if (in({"send", "recv", "recv_any_source"}, base)) return Rule::not_observed;
        return rule_disabled("collective") ? Rule::generic : Rule::collective;
    }
    if (is_sampler(base)) return rule_disabled("random") ? Rule::generic : Rule::sampler;
    if (base == "native_dropout") return rule_disabled("dropout") ? Rule::generic : Rule::dropout;
    if (base == "_amp_foreach_non_finite_check_and_unscale")
        return rule_disabled("amp") ? Rule::generic : Rule::unscale;
    if (base == "_amp_update_scale") return Rule::follow_real;
    if (in({"topk", "sort", "kthvalue", "mode", "median", "nanmedian", "msort", "max_pool2d_with_indices",
            "max_pool3d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d",
            "cummax", "cummin"},
           base))
        return Rule::by_index;
    // max and min over a dimension have indices; over everything they do not.
    if (in({"max", "min"}, base) && op.schema().returns().size() == 2) return Rule::by_index;
    if (in({"nonzero", "unique_dim", "_unique", "_unique2", "unique_consecutive", "unique_dim_consecutive",
            "masked_select", "bincount", "record_stream", "is_pinned"},
           base))
        return base == "masked_select" ? Rule::generic : Rule::no_shadow;
    if (in({"_local_scalar_dense", "equal", "is_nonzero"}, base)) return Rule::leak;
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
                           std::string_view base) {
    const std::string& name = argument.name();
    // c10d schemas declare no write, and those of 1.13 have no argument names: what is written comes first.
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
    const bool hidden = is_hidden_mutator(base) && (name == "running_mean" || name == "running_var") &&
                        !rule_disabled("hidden_mutator");
    a.write = declared || hidden || collective_output;
    a.out = declared && argument.kwarg_only();
    a.overwrite = a.write && !rule_disabled("overwrite") &&
                  (a.out || (name == "self" && overwrites_self(base)) ||
                   (collective_output && !is_in_place_collective(base)));
    a.keep_real =
        (name == "found_inf" || name == "grad_scale" || name == "inv_scale") && !rule_disabled("amp");
    a.real_mask = decides_shape(base, name);
    return a;
}

// Ops that touch no element: they change metadata in place, or allocate memory without content.
bool touches_no_element(std::string_view base) {
    return in({"as_strided",
               "transpose",
               "t",
               "squeeze",
               "unsqueeze",
               "swapaxes",
               "swapdims",
               "detach",
               "resize",
               "resize_as",
               "_resize_output",
               "set",
               "rename",
               "empty",
               "empty_like",
               "new_empty",
               "new_empty_strided",
               "empty_strided",
               "empty_permuted",
               "_efficientzerotensor",
               "is_same_size",
               "is_set_to"},
              base);
}

bool declared_view(const c10::FunctionSchema& schema) {
    if (schema.returns().empty()) return false;
    for (const c10::Argument& result : schema.returns())
        if (!result.alias_info() || result.alias_info()->isWrite()) return false;
    return true;
}

}  // namespace

OpInfo describe(const c10::OperatorHandle& op) {
    const c10::FunctionSchema& schema = op.schema();
    OpInfo info;
    info.name = schema.name();
    info.base = base_name(schema.name());
    const std::string space = schema.name().substr(0, schema.name().find(':'));
    for (const c10::Argument& argument : schema.arguments()) {
        info.arguments.push_back(describe_argument(argument, info.arguments.size(), space, info.base));
        info.writes |= info.arguments.back().write;
    }
    info.rule = rule_of(op, space, info.base);
    info.is_view = touches_no_element(info.base) || (!info.writes && declared_view(schema));
    info.moves_bytes = moves_bytes(info.base) && !rule_disabled("bytes");
    return info;
}

}  // namespace mp::twin
