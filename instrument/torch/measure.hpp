#pragma once

#include <vector>

#include "instrument/torch/call.hpp"
#include "instrument/torch/parts.hpp"
#include "instrument/torch/tensors.hpp"

namespace mp::twin {

// Computes the figures of one op and adds them to the ledger: on the CPU at once, on a device when the step is
// complete. Safe to call from any thread, under TwinScope.

// One result of an op, with the twin's result and, if it was run, that of the fp32 op on the real inputs.
struct Measured {
    at::Tensor real, twin, local;
};

void measure_result(Parts&, const Site&, const OpInfo&, const Call&, const Measured&);
// For steps that are not sampled: looks for non-finite values in every low-precision result, and keeps the last
// result of a layer until the layer ends.
void glance_at_result(Parts&, const Site&, const OpInfo&, const Call&, const at::Tensor& real,
                      const at::Tensor& twin);
// Without a twin: one-sided statistics of the results on top of the stack. `target_was_finite`: what the op changes in
// place was finite before it, so that a value of its own making is non-finite.
void watch_results(Parts&, const Site&, const OpInfo&, const std::vector<IValue>& arguments,
                   bool target_was_finite, const Stack&, std::size_t results);
// Whether what the op is about to change in place is finite. A device is not waited for: true.
bool targets_are_finite(Parts&, const OpInfo&, const std::vector<IValue>& arguments);
// Called when a layer of this thread ends. Measures its last result. Does nothing while there is no twin.
void layer_ends(Parts&, LayerId) noexcept;

// Counts the elements of a sum that kept their old value although something was added. `before`: the running value, a
// copy if the op wrote it. The twin's values give the addends.
void measure_absorption(Parts&, const Site&, const OpInfo&, const at::Tensor& before, const at::Tensor& after,
                        const at::Tensor& twin_before, const at::Tensor& twin_after);
// The same for result = left + right, where the larger one is the running value.
void measure_sum(Parts&, const Site&, const OpInfo& op, const at::Tensor& left, const at::Tensor& right,
                 const at::Tensor& result);
// Without a twin: counts the elements of counters, and those that the op has left as they were.
void watch_counters(Parts&, const Site&, const OpInfo&, const std::vector<Counters::Counter>&);

}  // namespace mp::twin
