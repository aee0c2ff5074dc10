#pragma once

#include "instrument/torch/call.hpp"
#include "instrument/torch/compat.hpp"

namespace mp::twin {

// Ops that must not run as they are on the shadows:
//  - Attention kernels with Trait::half_only (flash, cuDNN) have no form in fp32. A run in fp32 takes the
//    memory-efficient kernel, and so does the twin.
//  - A convolution in fp32 runs in TF32 by default, and only an argument of _convolution switches that off for one
//    call. Matrix products are IEEE in every TwinScope.
bool has_own_fp32_kernel(const OpInfo&);

// Runs such an op on the shadows of `call`. Returns what the op returns; a result that no run in fp32 has is None.
// Throws where no kernel can follow the op.
Stack run_in_fp32(const Call&);

}  // namespace mp::twin
