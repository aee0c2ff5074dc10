#pragma once

#include "kernels/cuda/list.hpp"
#include "kernels/numerics/optimizer_step.hpp"

// One step of an optimizer over a list of weights: what each thread does. The arithmetic is that of
// kernels/numerics/optimizer_step.hpp, so the bits are those of kernels/cpu/optimizer.

namespace mp::cuda {

// The weights of one tensor, contiguous; device addresses. A null pointer: there is no such tensor.
struct OptimizerEntry {
    float* master;
    std::uint16_t* copy;
    const void* gradient;
    float* state;
    float* squares;
    U64 elements;
    U32 first_block;
    U32 number;  // of the weight in its call, for the seed
    std::uint8_t gradient_dtype;
    std::uint8_t copy_dtype;
};

struct OptimizerCounts {
    U64 meant_to_move, stagnated;
};

template <class Step>
struct OptimizerHead {
    Step step;
    const float* loss_scale;  // device memory; null: 1
    const float* found_inf;   // device memory; null, or 0: the step is made
    OptimizerCounts* counts;  // device memory, added to
    U64 seed;
    U32 entries;
    U32 blocks;
    U32 stochastic;
};

template <class Step, int Bytes>
struct OptimizerList {
    static constexpr U32 kEntries = (Bytes - sizeof(OptimizerHead<Step>)) / sizeof(OptimizerEntry);
    OptimizerHead<Step> head;
    OptimizerEntry entries[kEntries];
};

inline constexpr U32 kStepTile = 16;  // elements of a thread in a block's tile
inline constexpr U64 kStepBlock = U64{kThreads} * kStepTile;

// The value of a 16-bit pattern, and the pattern of a value; dtypes are fp16 and bf16.
MP_HD inline float widened(DType dtype, std::uint16_t raw) {
    if (dtype == DType::bf16) return as_float(U32{raw} << 16);
#if defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(raw));
    return x;
#else
    return decode_float<DType::fp16>(raw);
#endif
}
MP_HD inline std::uint16_t to_nearest(DType dtype, float x) {
    if (dtype == DType::bf16) {
        const U32 bits = bits_of(x);
        if (x != x) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
        return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
#if defined(__CUDA_ARCH__)
    std::uint16_t raw;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(raw) : "f"(x));
    return raw;
#else
    return encode<DType::fp16>(x);
#endif
}
MP_HD inline std::uint16_t stochastic(DType dtype, float x, U32 noise) {
    return dtype == DType::bf16 ? optim::round_stochastic<DType::bf16>(x, noise)
                                : optim::round_stochastic<DType::fp16>(x, noise);
}

template <class Step>
struct OptimizerThread {
    const OptimizerHead<Step>& head;
    const OptimizerEntry& entry;
    float loss_scale;
    OptimizerCounts counts{0, 0};

    MP_HD static float step(const optim::AdamW& s, float w, float g, float& state, float& square,
                            bool& moved) {
        return optim::step(s, w, g, state, square, moved);
    }
    MP_HD static float step(const optim::Sgd& s, float w, float g, float& state, float&, bool& moved) {
        return optim::step(s, w, g, state, moved);
    }

    MP_HD void element(U64 i) {
        const auto gradient_dtype = static_cast<DType>(entry.gradient_dtype);
        const auto copy_dtype = static_cast<DType>(entry.copy_dtype);
        float g = gradient_dtype == DType::fp32
                      ? static_cast<const float*>(entry.gradient)[i]
                      : widened(gradient_dtype, static_cast<const std::uint16_t*>(entry.gradient)[i]);
        if (loss_scale != 1) g = optim::quotient(g, loss_scale);
        const std::uint16_t old = entry.copy ? entry.copy[i] : std::uint16_t{0};
        const float before = entry.master ? entry.master[i] : widened(copy_dtype, old);
        float state = entry.state ? entry.state[i] : 0, square = entry.squares ? entry.squares[i] : 0;
        bool moved = false;
        const float after = step(head.step, before, g, state, square, moved);
        if (entry.state) entry.state[i] = state;
        if (entry.squares) entry.squares[i] = square;
        bool same = bits_of(before) == bits_of(after);
        if (entry.master) entry.master[i] = after;
        if (entry.copy) {
            const std::uint16_t now =
                head.stochastic ? stochastic(copy_dtype, after,
                                             optim::noise_at(optim::seed_of(head.seed, entry.number), i))
                                : to_nearest(copy_dtype, after);
            if (!entry.master) same = now == old;
            entry.copy[i] = now;
        }
        counts.meant_to_move += moved;
        counts.stagnated += moved && same;
    }

    // The elements of thread `thread` in block `block` of the entry's `blocks`; neighbours have neighbouring elements.
    MP_HD void run(U32 block, U32 blocks, U32 thread) {
        for (U64 tile = block; tile * kStepBlock < entry.elements; tile += blocks) {
            const U64 first = tile * kStepBlock + thread;
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
            for (U32 k = 0; k < kStepTile; ++k) {
                const U64 i = first + U64{k} * kThreads;
                if (i < entry.elements) element(i);
            }
        }
    }
};

// The entry that a block belongs to, and its number of blocks.
template <class List>
MP_HD inline U32 entry_at(const List& list, U32 block, U32& own, U32& blocks) {
    U32 low = 0, high = list.head.entries;
    while (high - low > 1) {
        const U32 middle = (low + high) / 2;
        if (list.entries[middle].first_block <= block)
            low = middle;
        else
            high = middle;
    }
    own = block - list.entries[low].first_block;
    blocks = (low + 1 < list.head.entries ? list.entries[low + 1].first_block : list.head.blocks) -
             list.entries[low].first_block;
    return low;
}

}  // namespace mp::cuda
