#pragma once

// The few differences between torch 1.13 and 2.15.

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

// Whether anything but the `saved` autograd nodes that keep a tensor refers to it. Never locks the pointer, because
// that could wake the tensor's Python object.
inline bool is_held(const c10::weak_intrusive_ptr<c10::TensorImpl>& tensor, std::size_t saved) {
    std::size_t holders = tensor.use_count();
    if (holders == 0) return false;
#if MP_TORCH_AT_LEAST(2, 1)
    // Since torch 2.10 a Python object counts as a holder even when only the tensor keeps it alive.
    const auto python_holds = [&](auto* object) {
        if constexpr (requires { object->has_unique_reference(); }) {
            if (!object->load_pyobj()) return false;
            if (holders == 1 || !object->has_unique_reference()) return true;
            --holders;
        }
        return false;
    };
    if (python_holds(tensor._unsafe_get_target()->pyobj_slot())) return true;
#endif
    return holders > saved;
}

// Whether torch fills memory that it has just allocated, with NaN, so that a read of it shows.
inline bool fills_new_memory() {
#if MP_TORCH_AT_LEAST(2, 2)
    const at::Context& context = at::globalContext();
    return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
#else
    return false;
#endif
}

// Whether the op's schema declares that it may draw random numbers.
inline bool draws_random(const c10::OperatorHandle& op) {
    return op.hasTag(at::Tag::nondeterministic_seeded);
}

}  // namespace mp::twin
