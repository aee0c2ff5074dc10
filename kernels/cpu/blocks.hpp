#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/tensor_stats.hpp"

// The functions that one instruction set provides: measures of up to kBlock contiguous elements. A block
// fits the first-level cache, so a rare second pass (for zeros, subnormals, NaN, or a spread that cancels)
// costs no memory traffic.
// Order of the sums: the number of lanes is fixed, an element's number within its group selects its lane,
// and lanes are added in order. In fp32 lanes every product is fused with its addition, in fp64 lanes only
// where the product is exact. Every instruction set therefore returns the same bits.

namespace mp::cpu {

inline constexpr std::size_t kBlock = 4096;
inline constexpr std::size_t kGroup = 32;  // elements per iteration of the inner loops
inline constexpr int kFormats = 6;         // fp64, fp32, fp16, bf16, e4m3, e5m2: index_of()
inline constexpr int kWide = 2;            // fp64, fp32

// An exponent histogram that grows block by block.
struct BlockHistogram {
    std::uint64_t* bins = nullptr;  // 256
    unsigned top = 0;               // expected highest bin of the next block; 0: unknown
};

// `histogram` may be null. `elements` is at most kBlock; `data` need not be aligned.
using StatisticsOfBlock = void (*)(const void* data, std::size_t elements, TensorStats& into,
                                   BlockHistogram* histogram);
using DivergenceOfBlock = void (*)(const void* real, const void* twin, std::size_t elements,
                                   Divergence& into);
// Whether any element is NaN or infinite.
using NonfiniteInBlock = bool (*)(const void* data, std::size_t elements);
// The values as doubles, exactly.
using WidenBlock = void (*)(const void* data, std::size_t elements, double* out);

struct Kernels {
    const char* name = nullptr;
    StatisticsOfBlock statistics[kFormats] = {};
    DivergenceOfBlock divergence[kFormats][kWide] = {};
    NonfiniteInBlock nonfinite[kFormats] = {};
    WidenBlock widen[kFormats] = {};
};

// Index in the tables; -1 for a dtype that is not measured.
constexpr int index_of(DType dtype) {
    switch (dtype) {
        case DType::fp64:
            return 0;
        case DType::fp32:
            return 1;
        case DType::fp16:
            return 2;
        case DType::bf16:
            return 3;
        case DType::e4m3:
            return 4;
        case DType::e5m2:
            return 5;
        default:
            return -1;
    }
}

// The instruction sets that this machine supports, best first; returns their number. Computed once per
// process.
inline constexpr int kMaxInstructionSets = 4;
int available(const Kernels* (&sets)[kMaxInstructionSets]) noexcept;
// The set in use. use() replaces it for tests and benchmarks.
const Kernels& kernels() noexcept;
void use(const Kernels&) noexcept;

}  // namespace mp::cpu
