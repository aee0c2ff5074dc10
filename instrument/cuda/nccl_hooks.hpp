#pragma once

#include <cstdint>

#include "instrument/cuda/hooks.hpp"

// Shared by the wrappers of NCCL's functions.

// Finds the real function, and fails as NCCL does where there is none.
#define MP_REAL(name)                                                \
    static mp::raw::Real<decltype(&name)> real{#name, "libnccl.so"}; \
    const auto next = real.get(__builtin_return_address(0));         \
    if (!next) return mp::raw::abi::kNcclInternalError

namespace mp::raw {

// Whether this thread is between ncclGroupStart and ncclGroupEnd.
bool is_in_group();
// A communicator whose handle is there at the end of this thread's outermost group.
void note_at_group_end(void* const* comm, std::uint64_t number);

}  // namespace mp::raw
