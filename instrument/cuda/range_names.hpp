#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/numerics/phase.hpp"

// What the name of an NVTX range shows about the training step that it is in. Pure functions of the name.

namespace mp::raw {

// The step that a range named like this runs; negative: it is not a step. `pattern` is --step-range: a '*' stands for
// the number. Without a pattern these count, in any case: "Train step 3", "training_step_3", "iteration 3", "iter: 3",
// "batch 3/100". Validation, generation and micro-steps are not steps.
std::int64_t step_of_range(std::string_view name, std::string_view pattern) noexcept;

// The phase that a range named like this runs; unknown: the name does not tell.
Phase phase_of_range(std::string_view name) noexcept;

// "Layer 3", "block.3", "encoder_layer_3", "h.3".
bool is_numbered_layer(std::string_view name) noexcept;

}  // namespace mp::raw
