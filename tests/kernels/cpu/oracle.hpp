#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/measure.hpp"
#include "kernels/numerics/convert.hpp"

// The measures once more, one element at a time in long double, from the table of formats.

namespace mp::cpu::oracle {

inline std::size_t width(DType dtype) { return static_cast<std::size_t>(format_of(dtype)->width()) / 8; }

inline double value(DType dtype, const void* data, std::size_t i) {
    std::uint64_t pattern = 0;
    std::memcpy(&pattern, static_cast<const char*>(data) + i * width(dtype), width(dtype));
    return __builtin_bit_cast(double, detail::decode_bits(*format_of(dtype), pattern));
}

inline std::vector<double> values(DType dtype, const void* data, std::size_t n) {
    std::vector<double> all(n);
    for (std::size_t i = 0; i < n; ++i) all[i] = value(dtype, data, i);
    return all;
}

// The values rounded to nearest into a format's bytes.
inline std::vector<unsigned char> stored(DType dtype, const std::vector<double>& from) {
    std::vector<unsigned char> bytes(from.size() * width(dtype) + 1);
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto bits = __builtin_bit_cast(std::uint64_t, from[i]);
        const std::uint64_t pattern = detail::encode_bits(*format_of(dtype), bits, Overflow::as_format);
        std::memcpy(bytes.data() + i * width(dtype), &pattern, width(dtype));
    }
    return bytes;
}

inline std::vector<double> normal(std::size_t n, unsigned seed, double mean = 0, double sigma = 1) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> draw(mean, sigma);
    std::vector<double> all(n);
    for (double& x : all) x = draw(random);
    return all;
}

inline double ulp(const FloatFormat& f, double y) {
    const int exponent = y == 0 ? min_exponent(f) : std::max(std::ilogb(y), min_exponent(f));
    return std::ldexp(1.0, exponent - f.mantissa_bits);
}

struct Summary {
    TensorStats stats;
    ExponentHistogram histogram;
};

inline void count(const FloatFormat& f, double x, Summary& s) {
    TensorStats& t = s.stats;
    ++t.count;
    t.nan += std::isnan(x);
    t.pos_inf += std::isinf(x) && x > 0;
    t.neg_inf += std::isinf(x) && x < 0;
    t.zero += x == 0;
    if (!std::isfinite(x) || x == 0) return;
    const double a = std::fabs(x);
    t.subnormal += a < min_normal(f);
    t.saturated += a == max_finite(f);
    t.amax = std::max(t.amax, a);
    t.amin = t.amin == 0 ? a : std::min(t.amin, a);
    const int bin = std::clamp(std::ilogb(a) + 127, 0, 254);
    ++s.histogram.bins[static_cast<std::size_t>(bin)];
}

inline Summary summary(DType dtype, const std::vector<double>& all) {
    Summary s;
    long double sum = 0, squares = 0, m2 = 0;
    for (const double x : all) {
        count(*format_of(dtype), x, s);
        if (!std::isfinite(x)) continue;
        sum += x;
        squares += static_cast<long double>(x) * x;
    }
    const auto n = static_cast<long double>(s.stats.finite());
    const long double mean = n > 0 ? sum / n : 0;
    for (const double x : all)
        if (std::isfinite(x)) m2 += (x - mean) * (x - mean);
    s.stats.sum = static_cast<double>(sum);
    s.stats.sum_squares = static_cast<double>(squares);
    s.stats.mean = static_cast<double>(mean);
    s.stats.m2 = static_cast<double>(m2);
    return s;
}

inline void pair(const FloatFormat& f, double x, double y, Divergence& d) {
    ++d.count;
    const bool finite_x = std::isfinite(x), finite_y = std::isfinite(y);
    d.differ += !(x == y || (std::isnan(x) && std::isnan(y)));
    if (finite_y) d.twin_amax = std::max(d.twin_amax, std::fabs(y));
    d.nonfinite_both += !finite_x && !finite_y;
    d.nonfinite_real += !finite_x && finite_y;
    d.nonfinite_twin += finite_x && !finite_y;
    if (!finite_x || !finite_y) return;
    const double e = std::fabs(x - y);
    ++d.compared;
    d.ulp_above_one += e / ulp(f, y) > 1;
    d.ulp_max = std::max(d.ulp_max, e / ulp(f, y));
    d.max_abs = std::max(d.max_abs, e);
    d.flushed += x == 0 && y != 0;
}

inline Divergence paired(DType dtype, const std::vector<double>& xs, const std::vector<double>& ys) {
    Divergence d;
    long double sums[8] = {};
    for (std::size_t i = 0; i < xs.size(); ++i) {
        pair(*format_of(dtype), xs[i], ys[i], d);
        if (!std::isfinite(xs[i]) || !std::isfinite(ys[i])) continue;
        const long double x = xs[i], y = ys[i], e = x - y;
        const long double terms[] = {e * e, y * y,        x * x,        x * y,
                                     e,     std::fabs(e), std::fabs(y), xs[i] == 0 ? std::fabs(y) : 0};
        for (int k = 0; k < 8; ++k) sums[k] += terms[k];
    }
    double* into[] = {&d.ee, &d.yy, &d.xx, &d.xy, &d.e, &d.abs_e, &d.abs_y, &d.flushed_abs};
    for (int k = 0; k < 8; ++k) *into[k] = static_cast<double>(sums[k]);
    return d;
}

}  // namespace mp::cpu::oracle
