#include "kernels/cpu/optimizer.hpp"

#include <cstddef>
#include <cstring>

#include "kernels/cpu/blocks.hpp"
#include "kernels/cpu/float_environment.hpp"

namespace mp::cpu {
namespace {

constexpr std::size_t kChunk =
    1024;  // its fp32 values of weight, gradient and moves stay in the first-level cache

// Index in the tables of the 16-bit formats.
int half_of(DType dtype) { return index_of(dtype) - kWide; }
bool in_16_bits(DType dtype) { return dtype == DType::fp16 || dtype == DType::bf16; }

bool usable(const OptimizerRange& r) {
    const bool gradient =
        r.gradient != nullptr && (r.gradient_dtype == DType::fp32 || in_16_bits(r.gradient_dtype));
    const bool copy = r.copy == nullptr || in_16_bits(r.copy_dtype);
    return gradient && copy && (r.master != nullptr || r.copy != nullptr);
}

// The gradients of a chunk in fp32 without the loss scale: where they are, or in `room`.
const float* gradients(const OptimizerRange& r, std::size_t at, std::size_t n, float scale, float* room) {
    const float* from = room;
    if (r.gradient_dtype == DType::fp32) {
        from = static_cast<const float*>(r.gradient) + at;
    } else {
        const auto* raw = static_cast<const std::uint16_t*>(r.gradient) + at;
        kernels().widen_floats[half_of(r.gradient_dtype)](raw, n, room);
    }
    if (scale == 1) return from;
    for (std::size_t i = 0; i < n; ++i) room[i] = from[i] / scale;
    return room;
}

void round_copy(const OptimizerRange& r, const OptimizerPass& pass, std::size_t at, std::size_t n,
                const float* from, std::uint16_t* to) {
    const int half = half_of(r.copy_dtype);
    if (pass.stochastic)
        kernels().narrow_stochastic[half](from, n, to, pass.seed, static_cast<std::uint64_t>(r.first) + at);
    else
        kernels().narrow[half](from, n, to);
}

// Where the 16-bit values are the weights, what stagnates is seen after the rounding.
std::uint64_t unmoved(const std::uint16_t* before, const std::uint16_t* after, const float* moved,
                      std::size_t n) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += (moved[i] != 0) & (before[i] == after[i]);
    return count;
}

template <class Step>
bool run(StepOfBlock<Step> step, const Step& settings, const OptimizerRange& r, const OptimizerPass& pass,
         optim::StepCounts& into) {
    const FloatEnvironment environment;
    float weights[kChunk], gradient[kChunk], moved[kChunk];
    std::uint16_t rounded[kChunk];
    const auto elements = static_cast<std::size_t>(r.elements);
    auto* const copy = static_cast<std::uint16_t*>(r.copy);
    for (std::size_t at = 0; at < elements; at += kChunk) {
        const std::size_t n = elements - at < kChunk ? elements - at : kChunk;
        OptimizerBlock block{n, r.master ? r.master + at : weights,
                             gradients(r, at, n, pass.loss_scale, gradient)};
        block.state = r.state ? r.state + at : nullptr;
        block.squares = r.squares ? r.squares + at : nullptr;
        block.moved = r.master ? nullptr : moved;
        if (!r.master) kernels().widen_floats[half_of(r.copy_dtype)](copy + at, n, weights);
        step(settings, block, into);
        if (!copy) continue;
        round_copy(r, pass, at, n, block.weight, rounded);
        if (!r.master) into.stagnated += unmoved(copy + at, rounded, moved, n);
        std::memcpy(copy + at, rounded, n * sizeof *rounded);
    }
    into.elements += elements;
    return true;
}

}  // namespace

bool optimize(const optim::AdamW& step, const OptimizerRange& range, const OptimizerPass& pass,
              optim::StepCounts& into) noexcept {
    if (!usable(range) || range.state == nullptr || range.squares == nullptr) return false;
    return run(kernels().adamw, step, range, pass, into);
}

bool optimize(const optim::Sgd& step, const OptimizerRange& range, const OptimizerPass& pass,
              optim::StepCounts& into) noexcept {
    if (!usable(range) || (range.state == nullptr && step.momentum != 0)) return false;
    return run(kernels().sgd, step, range, pass, into);
}

}  // namespace mp::cpu
