#pragma once

#include <memory>
#include <vector>

#include "instrument/torch/op_info.hpp"
#include "kernels/numerics/tensor_stats.hpp"

namespace mp::twin {

struct LateInputs;  // measure.cpp

// One call of an op on its way through the twin.
struct Call {
    Call(const OpInfo& i, const c10::OperatorHandle& o, c10::DispatchKeySet b, Stack* s)
        : info(i), op(o), below(b), stack(s) {}

    const OpInfo& info;
    const c10::OperatorHandle& op;
    c10::DispatchKeySet below;  // the dispatch keys to which the real op continues
    Stack* stack;               // the program's: arguments before, results after

    std::vector<IValue> real;    // arguments
    std::vector<IValue> shadow;  // the same for the twin
    enum class Real : std::uint8_t { pending, running, done } state = Real::pending;
    bool possible = true;  // every float argument has a shadow
    bool bytes = false;    // floats travel through 1-byte tensors
    bool local = false;    // the arguments of `shadow` are the real ones, widened
    const char* why_not = "";
    bool target_was_finite = true;  // whether the values that it changes in place were finite before the op
    std::vector<std::shared_ptr<const TensorStats>> late_targets;  // of those on a device, known later
    mutable std::shared_ptr<const LateInputs> late_inputs;  // of those on a device; made by the first result

    struct Pair {
        at::Tensor real, shadow;
        bool apart = false;  // the shadow has its own memory, not the map's
    };
    std::vector<Pair> written_floats;
    struct Kept {
        at::Tensor target, before, twin_before;
    };
    std::vector<Kept> kept;  // old values of 16-bit targets of arithmetic in place, in a sampled step
    std::vector<Pair> written_integers;  // shadow: a copy that the twin's op writes
};

// Whether a tensor's memory is that of an argument.
bool shares_memory(const Call&, const at::Tensor&);

// Whether the call gathers bytes of all ranks into one tensor, as FSDP2 does with parameters of several dtypes. The
// twin then takes part with floats, whatever this rank knows of them: the other ranks cannot know what it knows.
bool gathers_bytes(const Call&);

}  // namespace mp::twin
