#pragma once

#include <cstdint>

#include "instrument/cuda/events.hpp"
#include "kernels/cpu/measure.hpp"
#include "kernels/cuda/results.hpp"

// What of a product is measured: whole matrices by their statistics, and a few elements of the result by computing them
// again in fp64.

namespace mp::raw {

bool is_measurable(const Matrix&);
cpu::TensorView view_of(const Matrix&);

// At most 32 rows and 32 columns of one matrix of the batch; other ones for another call.
cuda::SampledProduct sample_of(const Product&, std::uint64_t call);

}  // namespace mp::raw
