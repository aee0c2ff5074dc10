#pragma once

#include <vector>

#include "instrument/torch/call.hpp"
#include "instrument/torch/parts.hpp"
#include "instrument/torch/tensors.hpp"

namespace mp::twin {

// The figures of one op. Safe from any thread; called under TwinScope. All of them go to the ledger.

// One result of an op beside the twin's, and beside the fp32 op's on the real inputs where that was run.
struct Measured {
    at::Tensor real, twin, local;
};

void measure_result(Ledger&, const Site&, const OpInfo&, const Call&, const Measured&);
// For steps that are not sampled: looks for values that are not finite in everything low-precision, and remembers the
// last result of a layer until the layer ends.
void glance_at_result(Ledger&, const Site&, const OpInfo&, const Call&, const at::Tensor& real,
                      const at::Tensor& twin);
// Without a twin: one-sided statistics of the results on top of the stack.
void watch_results(Ledger&, const Site&, const OpInfo&, const std::vector<IValue>& arguments, const Stack&,
                   std::size_t results);
// A layer of this thread ends: measures what it returned last. Does nothing while there is no twin.
void layer_ends(Parts&, LayerId) noexcept;

// Counts the elements of a sum that kept their old value although something was added. `before`: the running value, a
// copy if the op wrote it. The twin's values say what was added.
void measure_absorption(Ledger&, const Site&, const OpInfo&, const at::Tensor& before,
                        const at::Tensor& after, const at::Tensor& twin_before, const at::Tensor& twin_after);

}  // namespace mp::twin
