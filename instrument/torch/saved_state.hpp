#pragma once

#include "instrument/torch/parts.hpp"

namespace mp::twin {

// Writes the files that --save-twin and --save-real name: the state of the twin and of the program, as safetensors. A
// failure is noted and printed. Called once, when the program ends.
void save_state(Parts&);

}  // namespace mp::twin
