#pragma once

#include <array>
#include <optional>

#include "instrument/torch/compat.hpp"
#include "kernels/cpu/measure.hpp"
#include "runtime/trace/records.hpp"

// What the kernels measure, as figures of the record of a tensor.

namespace mp::twin {

void put(trace::TensorRecord&, const TensorStats&, const Divergence&);
// Without a twin it is not known how far an element should have moved.
void put(trace::TensorRecord&, const cpu::Stagnation&, bool has_twin);
void put(trace::TensorRecord&, const Divergence& change);

// Values before and after, wanted values before and after. None if the kernels cannot read one of them.
std::optional<cpu::Stagnation> stagnation_of(const std::array<at::Tensor, 4>&);

}  // namespace mp::twin
