#pragma once

#include "kernels/cuda/list.hpp"
#include "kernels/numerics/blockwise.hpp"

// Optimizer state in 8 bits: what each thread does. A warp takes one block of 256 elements.

namespace mp::cuda {

// One contiguous tensor. Addresses are the device's.
struct BlockwiseCall {
    blockwise::Table table;
    float* values;
    std::uint8_t* codes;
    float* scales;
    U64 elements;
};

// Elements `lane`, `lane` + 32, ... of block `block`.
struct BlockLane {
    const BlockwiseCall& call;
    const blockwise::Table& table;  // the call's, or a nearer copy of it
    U64 block;
    U32 lane;

    template <class F>
    MP_HD void for_elements(const F& f) const {
        const U64 first = block * blockwise::kBlock + lane;
        for (U32 k = 0; k < blockwise::kBlock / kWarp; ++k)
            if (const U64 i = first + U64{k} * kWarp; i < call.elements) f(i);
    }
    MP_HD float largest() const {
        float largest = 0;
        for_elements([&](U64 i) { largest = blockwise::larger(largest, call.values[i]); });
        return largest;
    }
    MP_HD void quantize(float scale) const {
        if (lane == 0) call.scales[block] = scale;
        for_elements([&](U64 i) {
            call.codes[i] = blockwise::code_of(table, blockwise::share_of(call.values[i], scale));
        });
    }
    MP_HD void dequantize() const {
        const float scale = call.scales[block];
        for_elements([&](U64 i) { call.values[i] = blockwise::decoded(table, call.codes[i], scale); });
    }
};

MP_HD inline U64 blocks_of(const BlockwiseCall& call) {
    return (call.elements + blockwise::kBlock - 1) / blockwise::kBlock;
}

}  // namespace mp::cuda
