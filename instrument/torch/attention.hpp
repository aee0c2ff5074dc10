#pragma once

#include "instrument/torch/call.hpp"
#include "instrument/torch/compat.hpp"

namespace mp::twin {

// Attention kernels with Trait::half_only (flash, cuDNN) have no form in fp32. A run in fp32 takes the memory-efficient
// kernel instead, and so does the twin: runs it on the shadows of `call`. Returns what the op returns; a result that no
// run in fp32 has is None. Throws where the kernel cannot follow the op.
Stack attention_in_fp32(const Call&);

}  // namespace mp::twin
