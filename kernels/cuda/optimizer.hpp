#pragma once

#include "kernels/cpu/blockwise.hpp"
#include "kernels/cpu/optimizer.hpp"
#include "kernels/cuda/measure.hpp"

// The optimizer steps of kernels/cpu/optimizer.hpp, and state in 8 bits as in kernels/cpu/blockwise.hpp, on an NVIDIA
// GPU: lists of weights in one launch, on a stream of the program, with the same bits (a NaN may have another payload).
// As in kernels/cuda/measure.hpp only the driver API is used, and nothing throws, waits or takes memory.

namespace mp::cuda {

struct OptimizerCounts;

// What stays on the device; addresses there.
struct DevicePass {
    const float* loss_scale = nullptr;  // gradients are divided by it; null: 1
    const float* found_inf = nullptr;   // if it is not 0 nothing is written; null: the step is made
    OptimizerCounts* counts = nullptr;  // two 64-bit numbers, added to: meant to move, stagnated
    bool stochastic = false;
    std::uint64_t seed = 0;  // of weight 0; weight i has optim::seed_of()
};

class Optimizer {
public:
    // Into the current context of the calling thread; may wait for the device.
    Outcome load() noexcept;
    bool ready() const noexcept { return module_ != nullptr; }

    // One step over ranges. Their addresses are the device's; their `first` must be 0.
    Outcome step(Stream, const optim::AdamW&, const cpu::OptimizerRange*, int count,
                 const DevicePass&) const noexcept;
    Outcome step(Stream, const optim::Sgd&, const cpu::OptimizerRange*, int count,
                 const DevicePass&) const noexcept;
    // A whole tensor into 8 bits and back. Addresses are the device's.
    Outcome quantize(Stream, const blockwise::Table&, const float* values,
                     const cpu::QuantizedRange& into) const noexcept;
    Outcome dequantize(Stream, const blockwise::Table&, const cpu::QuantizedRange&,
                       float* values) const noexcept;

private:
    struct Kernel {
        CUfunc_st* small = nullptr;
        CUfunc_st* large = nullptr;  // null where the driver is too old
    };
    template <class Step>
    Outcome run(const Kernel&, Stream, const Step&, const cpu::OptimizerRange*, int count,
                const DevicePass&) const noexcept;

    CUmod_st* module_ = nullptr;
    Kernel adamw_, sgd_;
    CUfunc_st* quantize_ = nullptr;
    CUfunc_st* dequantize_ = nullptr;
};

}  // namespace mp::cuda
