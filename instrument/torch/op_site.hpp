#pragma once

#include "instrument/torch/op_info.hpp"
#include "instrument/torch/parts.hpp"
#include "instrument/torch/site.hpp"

namespace mp::twin {

// Which layer and phase an op of this thread belongs to; unknown if neither can be determined. `forward`: it records
// gradients.
Site site_of(Parts&, const OpInfo&, bool forward);

}  // namespace mp::twin
