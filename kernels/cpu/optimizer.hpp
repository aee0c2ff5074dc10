#pragma once

#include <cstdint>

#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/optimizer_step.hpp"

// The optimizer step of mixed precision on the CPU, one pass over memory: gradients in fp32, bf16 or fp16, fp32 master
// weights and state, and a 16-bit copy out, with Highway and dispatch at run time. The bits are those of
// kernels/numerics/optimizer_step.hpp on every instruction set, whatever the split of a tensor into ranges.
// Nothing here throws or allocates.

namespace mp::cpu {

// A range of one tensor; all pointers are to its first element, contiguous. One of the weights is enough: with a
// master the copy is its rounding, without one the copy is the weight.
struct OptimizerRange {
    std::int64_t elements = 0;
    std::int64_t first = 0;          // number of the first element within its tensor, for stochastic rounding
    float* master = nullptr;         // fp32 weights, or null
    void* copy = nullptr;            // 16-bit weights, or null
    DType copy_dtype = DType::bf16;  // bf16 or fp16
    const void* gradient = nullptr;
    DType gradient_dtype = DType::fp32;  // fp32, bf16 or fp16
    float* state = nullptr;              // exp_avg, or the momentum buffer; null for SGD without momentum
    float* squares = nullptr;            // exp_avg_sq
};

struct OptimizerPass {
    float loss_scale = 1;     // gradients are divided by it
    bool stochastic = false;  // the copy is rounded stochastically instead of to nearest even
    std::uint64_t seed = 0;   // of this tensor and step
};

// Whether a step can be made of the range: dtypes are the ones above, and there are a weight and the state it needs.
bool serves(const optim::AdamW&, const OptimizerRange&) noexcept;
bool serves(const optim::Sgd&, const OptimizerRange&) noexcept;

// False, and nothing is written, for a range that it does not serve.
bool optimize(const optim::AdamW&, const OptimizerRange&, const OptimizerPass&,
              optim::StepCounts& into) noexcept;
bool optimize(const optim::Sgd&, const OptimizerRange&, const OptimizerPass&,
              optim::StepCounts& into) noexcept;

}  // namespace mp::cpu
