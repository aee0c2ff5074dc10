#pragma once

#include <string_view>

#include "kernels/numerics/op_traits.hpp"
#include "runtime/trace/records.hpp"

// What an op may cost without anybody having done anything wrong.

namespace mp::trace {

bool is_backward_op(std::string_view op);    // "aten::gelu_backward"
bool is_in_place_name(std::string_view op);  // "aten::add_"

// One rounding of the result is the least a low-precision op costs. Ops that round on the way (an intermediate
// kept in 16 bits, a fused sequence of steps) cost more, each rounding adding its square: metrics.md 3.6,
// E[LOC^2] = (0.425 u)^2 (1 + k). `sqrt(1 + k)`, in one-rounding floors.
double expected_phi(std::string_view op);

// Ops whose result is rounded once, element by element. Stochastic rounding makes about two floors of one
// there, without bias.
bool is_elementwise(std::string_view op);
bool is_sum_step(std::string_view op);  // add, sub, and their in-place forms: a running sum is made of them
bool is_fill(std::string_view op);      // writes constants, as masks do
bool may_add_by_index(std::string_view op);  // index_put with accumulate=True, scatter with reduce="add"
bool is_matrix_product(std::string_view op);
bool is_norm(std::string_view op);  // batch_norm, layer_norm, group_norm, rms_norm ...

// Of the results over all merged calls; -1 when not measured, infinity for an error over a zero reference.
double introduced_phi(const OpRecord&);
double total_phi(const OpRecord&);
double inherited_phi(const OpRecord&);
// sqrt of the quotient; 0/0 is 0. Not relative_l2() of kernels/numerics: a NaN as the error gives 0 here, NaN there.
double relative(double error_squares, double squares);

// tau, or tau + 3 / sqrt(n) below 1,024 elements (metrics.md 3.6).
double widened(double tau, std::uint64_t elements);

// Most results lie where the format has fewer bits than it promises: then error is a question of range.
bool near_subnormal(const OpRecord&);
// All results have one magnitude (a dropout mask, a mean's weight): one rounding error many times over.
bool one_magnitude(const OpRecord&);

}  // namespace mp::trace
