#pragma once

#include "instrument/torch/call.hpp"
#include "instrument/torch/compat.hpp"

namespace mp::twin {

// Ops that must not run as they are on the shadows:
//  - Attention kernels with Trait::half_only (flash, cuDNN) have no form in fp32. A run in fp32 takes the
//    memory-efficient kernel, and so does the twin.
//  - A convolution in fp32 runs in TF32 by default, and so does its backward. Only an argument of _convolution, and of
//    the function that torch calls for the backward in cuDNN, switches that off for one call: the setting itself is of
//    the process, whose other threads read it too. Matrix products are IEEE in every TwinScope.
//  - A recurrent layer of cuDNN draws other numbers for its dropout in fp32 than in 16 bits.
bool has_own_fp32_kernel(const OpInfo&);

// Runs such an op on the shadows of `call`. Returns what the op returns; a result that no run in fp32 has is None.
// Throws where no kernel can follow the op.
Stack run_in_fp32(const Call&);

}  // namespace mp::twin
