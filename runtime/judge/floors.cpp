#include "runtime/judge/floors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/float_format.hpp"
#include "runtime/fold/parts.hpp"

namespace mp::trace {
namespace {

// Without namespace and overload.
std::string_view bare(std::string_view op) {
    const std::size_t colons = op.rfind("::");
    if (colons != std::string_view::npos) op.remove_prefix(colons + 2);
    return op.substr(0, op.find('.'));
}

}  // namespace

bool is_backward_op(std::string_view op) { return bare(op).find("backward") != std::string_view::npos; }

bool is_in_place_name(std::string_view op) {
    const std::string_view name = bare(op);
    return name.size() > 1 && name.ends_with('_') && !name.ends_with("__");
}

double expected_phi(std::string_view op) {
    const Traits traits = traits_of_recorded(op);
    int roundings = 1;
    if (traits.has(Trait::rounds_twice)) roundings = 2;
    if (traits.has(Trait::fused)) roundings = 4;
    // A backward op computes the values of its forward again and multiplies them with the incoming gradient.
    if (is_backward_op(op) && !traits.has(Trait::product)) roundings = std::max(roundings * 2, 3);
    return std::sqrt(static_cast<double>(roundings));
}

bool is_elementwise(std::string_view op) {
    return !is_backward_op(op) && traits_of_recorded(op).has(Trait::elementwise);
}
bool is_sum_step(std::string_view op) { return traits_of_recorded(op).has(Trait::sum_step); }
bool is_fill(std::string_view op) { return traits_of_recorded(op).has(Trait::writes_constants); }
bool may_add_by_index(std::string_view op) { return traits_of_recorded(op).has(Trait::adds_by_index); }
bool is_matrix_product(std::string_view op) { return traits_of_recorded(op).has(Trait::product); }
bool is_whole_layer(std::string_view op) { return traits_of_recorded(op).has(Trait::whole_layer); }
bool is_norm(std::string_view op) { return traits_of_recorded(op).has(Trait::norm); }

double relative(double error_squares, double squares) {
    if (error_squares <= 0) return 0;
    const double error = relative_error(error_squares, squares);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

bool leaves_what_it_updates(const OpRecord& op) {
    constexpr std::uint64_t kFewest = 64;
    return is_low_precision(op.dtype) && op.added >= kFewest &&
           static_cast<double>(op.absorbed) > kLeft * static_cast<double>(op.added);
}

double introduced_phi(const OpRecord& op) {
    if (op.loc_compared == 0) return -1;
    return floor_ratio(relative(op.loc_error_squares, op.loc_squares), op.dtype);
}

double total_phi(const OpRecord& op) {
    if (op.compared == 0) return -1;
    return floor_ratio(relative(op.error_squares, op.twin_squares), op.dtype);
}

// The record has the twin's squares over all compared elements. PROP is measured beside LOC, which omits casts, moves
// and very large calls: then it has that share of them.
double inherited_error(const OpRecord& op) {
    if (op.loc_compared == 0 || op.compared == 0) return 0;
    const double share = static_cast<double>(op.loc_compared) / static_cast<double>(op.compared);
    return relative(op.prop_error_squares, std::min(share, 1.0) * op.twin_squares);
}

double inherited_phi(const OpRecord& op) {
    if (op.loc_compared == 0 || op.compared == 0) return -1;
    return floor_ratio(inherited_error(op), op.dtype);
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
