#include "runtime/judge/floors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/float_format.hpp"

namespace mp::trace {
namespace {

using Names = std::span<const std::string_view>;

bool among(std::string_view name, Names names) { return std::ranges::find(names, name) != names.end(); }

bool drop_prefix(std::string_view& name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    return true;
}

bool drop_suffix(std::string_view& name, std::string_view suffix) {
    if (name.size() <= suffix.size() || !name.ends_with(suffix)) return false;
    name.remove_suffix(suffix.size());
    return true;
}

// Without namespace and overload.
std::string_view bare(std::string_view op) {
    const std::size_t colons = op.rfind("::");
    if (colons != std::string_view::npos) op.remove_prefix(colons + 2);
    return op.substr(0, op.find('.'));
}

// clang-format off: a table
constexpr std::string_view kElementwise[] = {"copy", "to_copy", "to",      "clone", "add",     "sub",     "mul",
                                             "div",  "neg",     "lerp",    "relu",  "addcmul", "addcdiv", "sqrt",
                                             "rsub", "exp",     "sigmoid", "tanh",  "gelu",    "silu",    "foreach_add",
                                             "foreach_mul", "foreach_lerp", "foreach_addcdiv", "foreach_addcmul",
                                             "foreach_copy"};
// clang-format on
constexpr std::string_view kSums[] = {"add", "sub", "rsub", "foreach_add", "foreach_sub"};
constexpr std::string_view kFills[] = {
    "fill",           "masked_fill", "where",           "full",          "full_like", "zeros", "ones",
    "zero",           "new_full",    "constant_pad_nd", "scalar_tensor", "triu",      "tril",  "index_fill",
    "masked_scatter", "clamp",       "clamp_min",       "clamp_max",     "nan_to_num"};
// clang-format off: a table
constexpr std::string_view kProducts[] = {"mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "convolution",
                                          "mkldnn_convolution", "cudnn_convolution", "conv1d", "conv2d", "conv3d",
                                          "addbmm", "mv", "addmv", "dot", "mkldnn_linear", "scaled_mm"};
// clang-format on
constexpr std::string_view kNorms[] = {"batch_norm",       "layer_norm",     "group_norm",
                                       "instance_norm",    "rms_norm",       "cudnn_batch_norm",
                                       "batch_norm_legit", "fused_rms_norm", "fused_layer_norm"};
// One low-precision intermediate and the result: sqrt 2.
// clang-format off: a table
constexpr std::string_view kTwoRoundings[] = {"softmax", "log_softmax", "layer_norm", "batch_norm", "group_norm",
                                              "rms_norm", "instance_norm", "addcmul", "addcdiv", "lerp", "gelu", "silu",
                                              "glu", "logsumexp", "var", "std", "norm", "linalg_vector_norm", "mish",
                                              "foreach_lerp", "foreach_addcmul", "foreach_addcdiv", "hardswish",
                                              "softplus", "elu", "selu", "upsample_bilinear2d", "upsample_bicubic2d"};
// clang-format on
// clang-format off: a table
constexpr std::string_view kFused[] = {"scaled_dot_product_attention", "scaled_dot_product_flash_attention",
                                       "scaled_dot_product_efficient_attention", "scaled_dot_product_cudnn_attention",
                                       "scaled_dot_product_flash_attention_for_cpu",
                                       "scaled_dot_product_fused_attention_overrideable", "flash_attention_forward",
                                       "efficient_attention_forward", "lstm", "gru", "mkldnn_rnn_layer", "cudnn_rnn",
                                       "fused_adam", "fused_adamw", "fused_sgd", "transform_bias_rescale_qkv",
                                       "native_multi_head_attention", "thnn_fused_lstm_cell", "thnn_fused_gru_cell"};
// clang-format on

}  // namespace

std::string base_name(std::string_view op) {
    std::string_view name = bare(op);
    drop_prefix(name, "_");
    drop_prefix(name, "native_");
    drop_suffix(name, "_out");
    drop_suffix(name, "_");
    drop_suffix(name, "_backward");
    drop_suffix(name, "_backward_data");
    drop_suffix(name, "_forward");
    return std::string(name.empty() ? op : name);
}

bool is_backward_op(std::string_view op) { return bare(op).find("backward") != std::string_view::npos; }

bool is_in_place_name(std::string_view op) {
    const std::string_view name = bare(op);
    return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

double expected_phi(std::string_view op) {
    const std::string name = base_name(op);
    int roundings = 1;
    if (among(name, kTwoRoundings)) roundings = 2;
    if (among(name, kFused)) roundings = 4;
    // A backward recomputes what its forward had, and multiplies it with the incoming gradient.
    if (is_backward_op(op) && !among(name, kProducts)) roundings = std::max(roundings * 2, 3);
    return std::sqrt(static_cast<double>(roundings));
}

bool is_elementwise(std::string_view op) { return !is_backward_op(op) && among(base_name(op), kElementwise); }
bool is_sum_step(std::string_view op) { return among(base_name(op), kSums); }
bool is_fill(std::string_view op) { return among(base_name(op), kFills); }
bool is_matrix_product(std::string_view op) { return among(base_name(op), kProducts); }
bool is_norm(std::string_view op) { return among(base_name(op), kNorms); }

double relative(double error_squares, double squares) {
    if (!(error_squares > 0)) return 0;
    return squares > 0 ? std::sqrt(error_squares / squares) : std::numeric_limits<double>::infinity();
}

double introduced_phi(const OpRecord& op) {
    if (op.loc_compared == 0) return -1;
    return floor_ratio(relative(op.loc_error_squares, op.loc_squares), op.dtype);
}

double total_phi(const OpRecord& op) {
    if (op.compared == 0) return -1;
    return floor_ratio(relative(op.error_squares, op.twin_squares), op.dtype);
}

// PROP has no reference of its own in the record: the fp32 op on the real inputs is close to the twin's result.
double inherited_phi(const OpRecord& op) {
    if (op.loc_compared == 0 || op.compared == 0) return -1;
    return floor_ratio(relative(op.prop_error_squares, op.loc_squares), op.dtype);
}

double widened(double tau, std::uint64_t elements) {
    return elements >= 1024 || elements == 0 ? tau : tau + 3 / std::sqrt(static_cast<double>(elements));
}

bool near_subnormal(const OpRecord& op) {
    const FloatFormat* format = format_of(op.dtype);
    if (!format || op.loc_compared == 0) return false;
    const double rms = std::sqrt(op.loc_squares / static_cast<double>(op.loc_compared));
    return rms < 4 * min_normal(*format);
}

bool one_magnitude(const OpRecord& op) { return op.amax > 0 && op.amin == op.amax; }

}  // namespace mp::trace
