#pragma once

#include <cstdint>

#include "instrument/cuda/events.hpp"
#include "kernels/cpu/measure.hpp"
#include "kernels/cuda/results.hpp"
#include "runtime/trace/records.hpp"

// What of a product is measured: whole matrices by their statistics, a few elements of the result by computing them
// again in fp64, and all of them by a sketch.

namespace mp::raw {

bool is_measurable(const Matrix&);
cpu::TensorView view_of(const Matrix&);

// At most 32 rows and 32 columns of one matrix of the batch; other ones for another call.
cuda::SampledProduct sample_of(const Product&, std::uint64_t call);

// Figures of the sketch of a product, each of kRowsOfSketch rows.
std::uint32_t figures_of_sketch(const cuda::SampledProduct&);
// What they say of the whole result, and of the rows that are farthest from what rounding explains.
trace::ProductRecord record_of(const cuda::SampledProduct&, const cuda::RowsError*);

}  // namespace mp::raw
