#pragma once

#include <cstdint>

#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/tensor_stats.hpp"

// The two measuring kernels, on the CPU. SIMD by Highway with dispatch at run time. Counts and extremes are exact.
// A sum is within 1e-6 of the sum of its magnitudes: fp32 lanes add 12 values each, fp64 lanes add those sums.
// Tensors of fp64, and blocks whose values are so large or small that fp32 squares would not do, are summed in
// fp64 throughout. Divergence's xx and xy follow from yy, ee and the sum of e * y, and are within 1e-6 of the sum of
// x^2 + 4 y^2. The order does not depend on the instruction set: every one returns the same bits. Built with
// clang (Highway 1.0.3 under g++ 12.2 falls back to scalar code) and linked into adapters that g++ builds, so
// nothing here throws, allocates, or has a type of the standard library in its interface.

namespace mp::cpu {

inline constexpr int kMaxDims = 8;

// Elements of a tensor in memory; strides count elements and may be 0 or negative. dims == 0: one element.
struct TensorView {
    const void* data = nullptr;
    DType dtype = DType::unknown;  // fp64, fp32, fp16, bf16, e4m3, e5m2
    int dims = 0;
    std::int64_t sizes[kMaxDims] = {};
    std::int64_t strides[kMaxDims] = {};
};

TensorView contiguous(const void* data, DType dtype, std::int64_t elements) noexcept;

// Adds the statistics of a tensor to `into` in one pass, and its exponents to `histogram` if that is not
// null. False, with nothing added: not a float format, or more dimensions than kMaxDims.
bool statistics(const TensorView&, TensorStats& into, ExponentHistogram* histogram = nullptr) noexcept;

// Whether any element is NaN or infinite; stops within 4,096 elements of the first. False for what is not a float
// format or has more dimensions than kMaxDims.
bool any_nonfinite(const TensorView&) noexcept;

// Adds the divergence of `real` from `twin` (fp32 or fp64, same sizes, own strides) in one pass. Ulps are
// those of `real`'s format. False, with nothing added: as above, or the sizes differ.
bool divergence(const TensorView& real, const TensorView& twin, Divergence& into) noexcept;

// Both at once: what is measured of every low-precision output. `histogram` of `real` may be null.
bool statistics_and_divergence(const TensorView& real, const TensorView& twin, TensorStats&, Divergence&,
                               ExponentHistogram* histogram = nullptr) noexcept;

// Elements that did not move: after[i] == before[i] (finite) while moved_after[i] != moved_before[i]. Of
// these, `below_half_ulp` have |moved_after - moved_before| < ulp(before)/2, which is what a sum of the
// format swallows. `moved_*` are fp32 or fp64; null `moved_before.data`: every element was meant to move.
struct Standstill {
    std::uint64_t count = 0;  // elements
    std::uint64_t meant_to_move = 0;
    std::uint64_t unmoved = 0;         // of those
    std::uint64_t below_half_ulp = 0;  // of the unmoved
    double wanted_squares = 0;         // sum of (moved_after - moved_before)^2
    double moved_dot = 0;              // sum of (after - before) * (moved_after - moved_before)
};
bool standstill(const TensorView& before, const TensorView& after, const TensorView& moved_before,
                const TensorView& moved_after, Standstill& into) noexcept;

// The instruction set that this machine runs: "AVX3_DL", "AVX2", ... For benchmarks.
const char* instruction_set() noexcept;

}  // namespace mp::cpu
