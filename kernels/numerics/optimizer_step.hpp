#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/numerics/convert.hpp"

// One element's step of AdamW and SGD in fp32, and the rounding of its 16-bit copy. A kernel computes exactly these
// operations, each rounded once, so every instruction set gives the same bits. They are also the bits of PyTorch 2.11's
// fused kernels on the CPU, for fp32 weights and gradients.

namespace mp::optim {

// As in torch.optim.AdamW (decoupled weight decay) and torch.optim.Adam. There is no amsgrad.
struct AdamWOptions {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
    bool decoupled = true, maximize = false;
};

// The constants of one step, rounded to fp32.
struct AdamW {
    float decay = 1;             // the weight's factor: 1 - lr * weight_decay when decoupled
    float penalty = 0;           // weight_decay, added to the gradient when not decoupled
    float share = 0;             // of the gradient in the mean: 1 - beta1, or -beta1 from the gradient's side
    bool from_gradient = false;  // beta1 <= 0.5: the mean is interpolated from the gradient
    float beta2 = 0, square_share = 0;  // square_share is 1 - beta2
    float step_size = 0;                // lr / (1 - beta1^step)
    float root = 1;                     // sqrt(1 - beta2^step)
    float eps = 0;
    bool maximize = false;
};

// `step` counts from 1.
inline AdamW at_step(const AdamWOptions& o, double step) {
    AdamW s;
    s.decay = o.decoupled ? static_cast<float>(1 - o.lr * o.weight_decay) : 1;
    s.penalty = o.decoupled ? 0 : static_cast<float>(o.weight_decay);
    s.share = static_cast<float>(1 - o.beta1);
    s.from_gradient = s.share >= 0.5f;
    if (s.from_gradient) s.share -= 1;
    s.beta2 = static_cast<float>(o.beta2);
    s.square_share = static_cast<float>(1 - o.beta2);
    s.step_size = static_cast<float>(o.lr / (1 - std::pow(o.beta1, step)));
    s.root = static_cast<float>(std::sqrt(1 - std::pow(o.beta2, step)));
    s.eps = static_cast<float>(o.eps);
    s.maximize = o.maximize;
    return s;
}

// As in torch.optim.SGD.
struct SgdOptions {
    double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
    bool nesterov = false, maximize = false;
};

struct Sgd {
    float step_size = 0, penalty = 0, momentum = 0;
    float share = 1;     // of the gradient in the momentum buffer: 1 - dampening
    bool first = false;  // the buffer is empty and becomes the gradient
    bool nesterov = false, maximize = false;
};

inline Sgd at_step(const SgdOptions& o, bool first) {
    return {static_cast<float>(o.lr),
            static_cast<float>(o.weight_decay),
            static_cast<float>(o.momentum),
            static_cast<float>(1 - o.dampening),
            first,
            o.nesterov,
            o.maximize};
}

// What a step did to the weights that are kept: the fp32 master, or the 16-bit weight where there is no master.
struct StepCounts {
    std::uint64_t elements = 0;
    std::uint64_t meant_to_move = 0;  // the update was not 0
    std::uint64_t stagnated = 0;      // number of those whose weight has the same bits as before
};

// ---- Arithmetic that no compiler may contract or reorder. ----------------------------------------

MP_HD inline float product(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}
MP_HD inline float sum(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}
MP_HD inline float quotient(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}
MP_HD inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }  // a * b + c
MP_HD inline float root_of(float x) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}

// ---- One element. --------------------------------------------------------------------------------

// Returns the new weight and sets `moved` to whether the update was not 0. `g` is the unscaled gradient; `mean` and
// `square` are the optimizer's state, exp_avg and exp_avg_sq.
MP_HD inline float step(const AdamW& s, float weight, float g, float& mean, float& square, bool& moved) {
    if (s.maximize) g = -g;
    if (s.penalty != 0) g = fused(weight, s.penalty, g);
    mean = fused(s.share, sum(g, -mean), s.from_gradient ? g : mean);
    square = fused(product(s.square_share, g), g, product(square, s.beta2));
    const float decayed = s.decay == 1 ? weight : product(weight, s.decay);
    const float change = quotient(product(s.step_size, mean), sum(quotient(root_of(square), s.root), s.eps));
    moved = change != 0 || (s.decay != 1 && weight != 0);
    return sum(decayed, -change);
}

// `buffer` is the momentum buffer; it is neither read nor written when the momentum is 0.
MP_HD inline float step(const Sgd& s, float weight, float g, float& buffer, bool& moved) {
    if (s.maximize) g = -g;
    if (s.penalty != 0) g = fused(weight, s.penalty, g);
    if (s.momentum != 0) {
        buffer = s.first ? g : fused(g, s.share, product(buffer, s.momentum));
        g = s.nesterov ? fused(buffer, s.momentum, g) : buffer;
    }
    moved = g != 0 && s.step_size != 0;
    return fused(-s.step_size, g, weight);
}

// ---- Stochastic rounding. ------------------------------------------------------------------------

// 32 bits that depend on every bit of both numbers. Two rounds of a multiplicative mixer: enough for the choice
// between two neighbours, not a source of random numbers for anything else.
MP_HD inline std::uint32_t mixed(std::uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
}
// The seed of weight `number` of a call.
MP_HD inline std::uint64_t seed_of(std::uint64_t seed, std::uint64_t number) {
    return seed + number * 0x9E3779B97F4A7C15u;
}
MP_HD inline std::uint32_t key_of(std::uint64_t seed, std::uint64_t index) {
    return static_cast<std::uint32_t>(index >> 32) * 0x9E3779B9u ^ static_cast<std::uint32_t>(seed >> 32);
}
MP_HD inline std::uint32_t noise_at(std::uint64_t seed, std::uint64_t index) {
    const auto low = static_cast<std::uint32_t>(index) + static_cast<std::uint32_t>(seed);
    return mixed(mixed(low) ^ key_of(seed, index));
}

// What separates fp32 from the format: bits of the mantissa, and the largest finite magnitude, as an fp32's bits.
template <DType D>
inline constexpr int kDropped = D == DType::bf16 ? 16 : 13;
template <DType D>
inline constexpr std::uint32_t kLargestMagnitude = __builtin_bit_cast(
    std::uint32_t, decode_float<D>(static_cast<Pattern<D>>(detail::beyond_finite(kFormat<D>) - 1)));

// x rounded to one of its two neighbours in the format, upwards in magnitude with a probability equal to its distance
// from the lower one: over all values of `noise` the mean is x. Beyond the largest finite value the nearest is taken.
template <DType D>
MP_HD inline Pattern<D> round_stochastic(float x, std::uint32_t noise) {
    static_assert(D == DType::bf16 || D == DType::fp16);
    const auto bits = __builtin_bit_cast(std::uint32_t, x);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu, random = noise >> (32 - kDropped<D>);
    if (magnitude > kLargestMagnitude<D>) return encode<D>(x);
    std::uint32_t moved = magnitude;
    if (D == DType::fp16 && magnitude < 0x38800000u)  // below 2^-14 its values are multiples of 2^-24
        moved = static_cast<std::uint32_t>(product(__builtin_bit_cast(float, magnitude), 0x1p37f));
    else if (D == DType::fp16)
        moved -= 0x38000000u;  // the other bias
    return static_cast<Pattern<D>>((moved + random) >> kDropped<D> | (bits >> 31) << 15);
}

}  // namespace mp::optim
