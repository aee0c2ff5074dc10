#pragma once

#include "instrument/torch/parts.hpp"

namespace mp::twin {

// Notes of how much memory the twin takes. The forecast is also printed, by the first rank.
void say_memory_forecast(Parts&);
void say_memory_at_end(Parts&);

}  // namespace mp::twin
