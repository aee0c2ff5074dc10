#pragma once

#include "instrument/torch/parts.hpp"

namespace mp::twin {

// Records notes on the twin's memory. The first rank also prints the forecast.
void say_memory_forecast(Parts&);
void say_memory_at_end(Parts&);

}  // namespace mp::twin
