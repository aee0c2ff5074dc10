#pragma once

#include <cstdint>

#include "kernels/numerics/dtype.hpp"

namespace mp {

// A tensor x compared with its reference y, as additive sums over the elements that are finite in both; e =
// x - y. The accuracy of each sum: kernels/cpu/measure.hpp. Every measure is a function of these sums, so
// merging is exact up to the rounding of fp64 sums.
struct Divergence {
    std::uint64_t count = 0;     // all elements
    std::uint64_t compared = 0;  // finite in both
    std::uint64_t nonfinite_both = 0;
    std::uint64_t nonfinite_real = 0;  // in x only
    std::uint64_t nonfinite_twin = 0;  // in y only
    std::uint64_t differ = 0;          // values differ; +0 and -0 are equal, two NaNs are equal
    std::uint64_t flushed = 0;         // x = 0 and y != 0
    std::uint64_t ulp_above_one = 0;   // |e| > 1 ulp of x's format at y
    double ulp_max = 0;                // largest |e| in such ulps
    double max_abs = 0;                // largest |e|
    double twin_amax = 0;              // largest finite |y|, also of elements that are not compared
    double ee = 0, yy = 0, xx = 0, xy = 0;
    double e = 0, abs_e = 0, abs_y = 0;
    double flushed_abs = 0;  // sum of |y| where x = 0

    void merge(const Divergence&);
};

// Metrics of docs/measures.md. 0/0 is 0; a positive error relative to zero is infinity.
double relative_l2(const Divergence&);  // sqrt(ee / yy)
double gain_bias(const Divergence&);    // (xy - yy) / yy; bf16: about 1e-5 to nearest, -2.8e-3 by truncation

// The relative L2 error of one rounding to nearest into a format: 0.425 x its unit roundoff (measured on
// N(0,1) for fp16, bf16, e4m3, e5m2: 0.423 to 0.426). 0 for a dtype without a format.
double one_rounding_floor(DType);
// The same for any format, by its significant bits. A rounding error that is uniform within half a step has
// a root mean square of 1/sqrt(3) = 0.58 unit roundoffs at the lower end of a binade and 0.29 at its upper
// end, 0.425 overall.
constexpr double one_rounding_floor(int significant_bits) {
    double floor = 0.425;
    for (; significant_bits > 0; --significant_bits) floor /= 2;
    return floor;
}
// Relative L2 in units of that floor. 1 is the unavoidable cost of storing the result. 0 without a floor.
double floor_ratio(double relative_l2, DType);

}  // namespace mp
