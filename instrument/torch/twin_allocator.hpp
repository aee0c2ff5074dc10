#pragma once

#include "instrument/torch/pool.hpp"

namespace mp::twin {

// After this call tensors made under TwinScope take their memory from the pool. The program's own tensors do not.
// Called once, before the first op of the twin and after the adapter is known to the process.
void install_twin_allocator(Pool&);

}  // namespace mp::twin
