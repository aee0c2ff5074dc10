#pragma once

#include <cstdint>

#include "kernels/numerics/divergence.hpp"
#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/tensor_stats.hpp"

// The two measuring kernels on the CPU, in SIMD with Highway and dispatch at run time. Counts and extremes
// are exact. A sum is within 1e-6 of the sum of its magnitudes: each fp32 lane adds 12 values, and fp64
// lanes add those sums. Tensors of fp64, and blocks whose values are too large or too small for fp32
// squares, are summed in fp64. Divergence's xx and xy are computed from yy, ee and the sum of e * y; they
// are within 1e-6 of the sum of x^2 + 4 y^2. The order of the sums is the same for every instruction set,
// so all return the same bits.
// Built with clang, because Highway 1.0.3 under g++ 12.2 falls back to scalar code, and linked into
// adapters that g++ builds. Therefore nothing here throws or allocates, and the interface has no type of
// the standard library.

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

// Adds the statistics of a tensor to `into` in one pass, and its exponents to `histogram` unless that is
// null. Returns false and adds nothing when the dtype is not a float format, or when there are more than
// kMaxDims dimensions.
bool statistics(const TensorView&, TensorStats& into, ExponentHistogram* histogram = nullptr) noexcept;

// Whether any element is NaN or infinite; stops within 4,096 elements of the first. False when the dtype is
// not a float format, or when there are more than kMaxDims dimensions.
bool any_nonfinite(const TensorView&) noexcept;

// Adds the divergence of `real` from `twin` (fp32 or fp64, same sizes, own strides) in one pass. Ulps are
// those of `real`'s format. Returns false and adds nothing in the cases above, or when the sizes differ.
bool divergence(const TensorView& real, const TensorView& twin, Divergence& into) noexcept;

// Both in one pass: the measures of a low-precision output. `histogram` of `real` may be null.
bool statistics_and_divergence(const TensorView& real, const TensorView& twin, TensorStats&, Divergence&,
                               ExponentHistogram* histogram = nullptr) noexcept;

// Elements that stagnate: after[i] == before[i] (finite) while moved_after[i] != moved_before[i]. For
// `below_half_ulp` of them |moved_after - moved_before| < ulp(before)/2, so that a sum in the format
// absorbs the update. `moved_*` are fp32 or fp64. If `moved_before.data` is null, every element was meant
// to move.
struct Stagnation {
    std::uint64_t count = 0;  // elements
    std::uint64_t meant_to_move = 0;
    std::uint64_t unmoved = 0;         // number of those that did not move
    std::uint64_t below_half_ulp = 0;  // number of the unmoved with an update below half an ulp
    double wanted_squares = 0;         // sum of (moved_after - moved_before)^2
    double moved_dot = 0;              // sum of (after - before) * (moved_after - moved_before)
};
bool stagnation(const TensorView& before, const TensorView& after, const TensorView& moved_before,
                const TensorView& moved_after, Stagnation& into) noexcept;

// The name of the instruction set in use: "AVX3_DL", "AVX2", ... For benchmarks.
const char* instruction_set() noexcept;

}  // namespace mp::cpu
