#include "kernels/numerics/divergence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/numerics/float_format.hpp"

namespace mp {
namespace {

// 0/0 is 0: no error relative to nothing. A positive number over 0 is infinity.
double ratio(double numerator, double denominator) {
    if (numerator == 0) return 0;
    if (denominator == 0) return std::copysign(std::numeric_limits<double>::infinity(), numerator);
    return numerator / denominator;
}

}  // namespace

void Divergence::merge(const Divergence& other) {
    count += other.count;
    compared += other.compared;
    nonfinite_both += other.nonfinite_both;
    nonfinite_real += other.nonfinite_real;
    nonfinite_twin += other.nonfinite_twin;
    differ += other.differ;
    flushed += other.flushed;
    ulp_above_one += other.ulp_above_one;
    ulp_max = std::max(ulp_max, other.ulp_max);
    max_abs = std::max(max_abs, other.max_abs);
    twin_amax = std::max(twin_amax, other.twin_amax);
    ee += other.ee;
    yy += other.yy;
    xx += other.xx;
    xy += other.xy;
    e += other.e;
    abs_e += other.abs_e;
    abs_y += other.abs_y;
    flushed_abs += other.flushed_abs;
}

double relative_l2(const Divergence& d) { return std::sqrt(ratio(d.ee, d.yy)); }

double gain_bias(const Divergence& d) { return ratio(d.xy - d.yy, d.yy); }

double one_rounding_floor(DType dtype) {
    const FloatFormat* format = format_of(dtype);
    return format ? one_rounding_floor(format->mantissa_bits + 1) : 0;
}

double floor_ratio(double relative_l2, DType dtype) {
    const double floor = one_rounding_floor(dtype);
    return floor > 0 ? relative_l2 / floor : 0;
}

}  // namespace mp
