#pragma once

#include "kernels/cuda/product.hpp"
#include "kernels/cuda/results.hpp"

// Sums of blocks of a tensor whose elements are multiplied by +1 or -1 first. The sign is a function of the element's
// place in the whole tensor and of the seed, so that ranks that have parts of it choose alike. What each thread does.

namespace mp::cuda {

// The argument of the kernel, by value.
struct SketchArgument {
    SketchedBlocks blocks;
    Sketch* out;  // pinned host memory, one per block
};

// The mixer of splitmix64: each bit of the result depends on all of the input's.
MP_HD inline U64 mixed(U64 x) {
    x = (x ^ (x >> 30)) * U64{0xbf58476d1ce4e5b9};
    x = (x ^ (x >> 27)) * U64{0x94d049bb133111eb};
    return x ^ (x >> 31);
}

MP_HD inline bool is_negative(U64 seed, U64 place) {
    return (mixed(place + seed * U64{0x9e3779b97f4a7c15}) & 1) != 0;
}

// A thread's part of one block.
MP_HD inline Sketch sketch_of(const SketchedBlocks& b, U32 block, U32 thread) {
    Sketch s;
    for (U32 i = thread; i < b.length; i += kThreads) {
        const double x = element(b.dtype, b.data, b.first[block] + i);
        s.sum += is_negative(b.seed, static_cast<U64>(b.place[block]) + i) ? -x : x;
        s.squares += x * x;
    }
    return s;
}

}  // namespace mp::cuda
