#pragma once

// The few differences in names between torch 1.13 and 2.x.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <torch/version.h>

#define MP_TORCH_AT_LEAST(major, minor) \
    (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace mp::twin {

using c10::IValue;
using Stack = torch::jit::Stack;

inline bool is_float8(at::ScalarType type) {
#if MP_TORCH_AT_LEAST(2, 4)
    return c10::isFloat8Type(type);
#else
    (void)type;
    return false;
#endif
}

// Whether the op's schema declares that it may draw random numbers.
inline bool draws_random(const c10::OperatorHandle& op) {
    return op.hasTag(at::Tag::nondeterministic_seeded);
}

}  // namespace mp::twin
