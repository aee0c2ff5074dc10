#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <memory>

#include "kernels/cpu/measure.hpp"
#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/tensor_stats.hpp"

namespace mp::twin {

// The port to a device whose work runs later than the program's calls. Measuring launches on the current stream of the
// calling thread, right after the op, and never waits. Results go to pinned memory and are valid once a fence that was
// made afterwards has passed. Safe from any thread. Each measure returns whether it was launched.
class Device {
public:
    virtual ~Device() = default;

    // The dispatch key of the ops that run on it.
    virtual c10::DispatchKey key() const noexcept = 0;
    virtual bool serves(const at::Tensor&) noexcept = 0;
    // Whether the current stream records a graph: nothing may be launched, read or followed.
    virtual bool captures() noexcept = 0;

    // Host memory that the device writes. Null when there is none left.
    virtual void* pin(std::size_t bytes) noexcept = 0;

    using View = cpu::TensorView;
    virtual bool statistics(at::Device, const View*, int count, TensorStats*,
                            ExponentHistogram*) noexcept = 0;
    virtual bool divergence(at::Device, const View* real, const View* twin, int count,
                            Divergence*) noexcept = 0;
    virtual bool stagnation(at::Device, const View* before, const View* after, const View* wanted_before,
                            const View* wanted_after, int count, cpu::Stagnation*) noexcept = 0;
    // The bytes of one small tensor.
    virtual bool copy(const at::Tensor&, void* to) noexcept = 0;

    class Fence {
    public:
        virtual ~Fence() = default;
        virtual bool passed() noexcept = 0;
        // Waits for a few seconds only: a device that hangs must not keep a program from ending.
        virtual bool wait() noexcept = 0;
    };
    // Behind everything that was launched since the last fence.
    virtual std::unique_ptr<Fence> fence() = 0;
};

}  // namespace mp::twin
