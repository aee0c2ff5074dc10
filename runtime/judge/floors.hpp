#pragma once

#include <string_view>

#include "kernels/numerics/op_traits.hpp"
#include "runtime/trace/records.hpp"

// The rounding error that an op is expected to have in a sound program.

namespace mp::trace {

bool is_backward_op(std::string_view op);    // "aten::gelu_backward"
bool is_in_place_name(std::string_view op);  // "aten::add_"

// `sqrt(1 + k)`, in one-rounding floors. A low-precision op costs at least one rounding of its result. The k further
// roundings inside the op (an intermediate in 16 bits, a fused sequence of steps) each add their square: metrics.md
// 3.6, E[LOC^2] = (0.425 u)^2 (1 + k).
double expected_phi(std::string_view op);

// Whether the op rounds its result once, element by element. Stochastic rounding there costs about two floors instead
// of one, without bias.
bool is_elementwise(std::string_view op);
bool is_sum_step(std::string_view op);       // add, sub and their in-place forms, the steps of a running sum
bool is_fill(std::string_view op);           // writes constants, as masks do
bool may_add_by_index(std::string_view op);  // index_put with accumulate=True, scatter with reduce="add"
bool is_matrix_product(std::string_view op);
bool is_whole_layer(std::string_view op);  // one kernel that rounds many times
bool is_norm(std::string_view op);         // batch_norm, layer_norm, group_norm, rms_norm ...

// For the results of all merged calls; -1 when not measured, infinity for an error over a zero reference.
double introduced_phi(const OpRecord&);

// Floors up to which every result was rounded to nearest. Truncation and stochastic rounding cost about two.
inline constexpr double kOneRounding = 1.25;

// Floors that the additions of a long sum must add to what came in.
inline constexpr double kAddedUp = 3;
// Floors from which on a single value is far from its twin, or from what its addends add up to.
inline constexpr double kFarAbovePhi = 8;

// Whether an op that writes in place leaves nearly all elements that it was meant to change as they are.
inline constexpr double kLeft = 0.9;  // their share
bool leaves_what_it_updates(const OpRecord&);
double total_phi(const OpRecord&);
double inherited_phi(const OpRecord&);
// PROP relative to the twin's results, 0 where it was not measured.
double inherited_error(const OpRecord&);
// sqrt of the quotient; 0/0 is 0, as is a difference of sums below 0. Never NaN, unlike relative_error() of
// runtime/fold: a NaN is the worst error, and as infinity it is above every limit and wins every comparison of a rule.
double relative(double error_squares, double squares);

// tau, or tau + 3 / sqrt(n) below 1,024 elements (metrics.md 3.6).
double widened(double tau, std::uint64_t elements);

// Whether most results are near the subnormal range, where the format has fewer bits. Their error is then a problem
// of range, not of precision.
bool near_subnormal(const OpRecord&);
// Whether all results have one magnitude (a dropout mask, a mean's weight), and so the same rounding error.
bool one_magnitude(const OpRecord&);

}  // namespace mp::trace
