#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/tensor_stats.hpp"

// The loops with which the kernels are compared.

namespace mp::bench {

// The fastest reading we know how to write: the widest loads and prefetch, eight sums.
std::uint64_t read(const void* data, std::size_t bytes);
// The same over two streams at once, as divergence reads; `a` and `b` advance in proportion.
std::uint64_t read_two(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes);

// One element at a time.
TensorStats naive_statistics_bf16(const std::uint16_t* data, std::size_t n, ExponentHistogram* histogram);
TensorStats naive_statistics_fp32(const float* data, std::size_t n, ExponentHistogram* histogram);
Divergence naive_divergence_bf16(const std::uint16_t* real, const float* twin, std::size_t n);

}  // namespace mp::bench
