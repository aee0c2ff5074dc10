#include "kernels/numerics/tensor_stats.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mp {
namespace {

// The smaller magnitude above 0; 0 means "none".
double smaller_magnitude(double a, double b) {
    if (a == 0) return b;
    if (b == 0) return a;
    return std::min(a, b);
}

// Merges mean and M2 of two groups of values, by the formula of Chan, Golub and LeVeque. The term with the
// distance of the means is the spread between the groups.
void merge_moments(TensorStats& into, const TensorStats& other) {
    const auto a = static_cast<double>(into.finite());
    const auto b = static_cast<double>(other.finite());
    if (b == 0) return;
    if (a == 0) {
        into.mean = other.mean;
        into.m2 = other.m2;
        return;
    }
    const double distance = other.mean - into.mean;
    const double share = b / (a + b);
    into.mean += distance * share;
    into.m2 += other.m2 + distance * distance * (a * share);
    // fp64 values beyond 1e154 overflow their squares: report infinity, not NaN.
    if (std::isnan(into.m2)) into.m2 = std::numeric_limits<double>::infinity();
}

}  // namespace

void TensorStats::merge(const TensorStats& other) {
    merge_moments(*this, other);
    count += other.count;
    nan += other.nan;
    pos_inf += other.pos_inf;
    neg_inf += other.neg_inf;
    zero += other.zero;
    subnormal += other.subnormal;
    saturated += other.saturated;
    amax = std::max(amax, other.amax);
    amin = smaller_magnitude(amin, other.amin);
    sum += other.sum;
    sum_squares += other.sum_squares;
}

void ExponentHistogram::merge(const ExponentHistogram& other) {
    for (std::size_t i = 0; i < bins.size(); ++i) bins[i] += other.bins[i];
}

}  // namespace mp
