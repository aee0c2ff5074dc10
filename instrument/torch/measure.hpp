#pragma once

#include <vector>

#include "instrument/torch/layers.hpp"
#include "instrument/torch/session.hpp"
#include "instrument/torch/twin.hpp"
#include "kernels/cpu/measure.hpp"

namespace mp::twin {

// The memory of a tensor for the measuring kernels. False: not on the CPU, no float format, or too many
// dimensions.
bool view_for_kernels(const at::Tensor&, cpu::TensorView&);

// 16 bits or less.
bool is_low_precision(at::ScalarType);

// Whether any value is NaN or infinite, as fast as memory is read.
bool any_nonfinite(const at::Tensor&);

// One result of an op beside the twin's, and beside the fp32 op's on the real inputs where that was run.
struct Measured {
    at::Tensor real, twin, local;
};

// Adds results to the session's ledger. Called under TwinScope.
void measure_result(Session&, const Site&, const OpInfo&, const Call&, const Measured&);
// In steps that are not sampled: everything low-precision is looked through for values that are not finite,
// and the last result of a layer is remembered until the layer ends.
void glance_at_result(Session&, const Site&, const OpInfo&, const Call&, const at::Tensor& real,
                      const at::Tensor& twin);
// Without a twin: one-sided statistics of the results on top of the stack.
void watch_results(Session&, const Site&, const OpInfo&, const std::vector<IValue>& arguments, const Stack&,
                   std::size_t results);
// A layer ends: what it returned last is measured.
void layer_ends(LayerId) noexcept;

// Whether an in-place or out-of-place sum kept its old value although something was added.
// `before` is the running value, a copy if the op wrote it; `addend` what was added, in fp32.
void measure_absorption(Session&, const Site&, const OpInfo&, const at::Tensor& before,
                        const at::Tensor& after, const at::Tensor& twin_before, const at::Tensor& twin_after);

}  // namespace mp::twin
