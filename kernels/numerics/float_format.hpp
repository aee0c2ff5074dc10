#pragma once

#include <cstdint>
#include <limits>

#include "kernels/numerics/dtype.hpp"

// MP_HD marks functions that GPU kernels may call too. They use integer or exact arithmetic only.
#if defined(__CUDACC__)
#define MP_HD __host__ __device__
#else
#define MP_HD
#endif

namespace mp {

// The meaning of the largest exponent field.
enum class Specials : std::uint8_t {
    ieee,      // infinity when the mantissa is 0, NaN otherwise
    nan_only,  // ordinary values, except that all ones is NaN; there is no infinity (OCP e4m3, "fn")
};

// A binary floating-point format. A pattern has `width()` bits: sign, exponent, mantissa. A tf32
// pattern is the upper 19 bits of the fp32 that stores it.
struct FloatFormat {
    DType dtype = DType::unknown;
    int exponent_bits = 0;
    int mantissa_bits = 0;  // stored bits; the leading 1 of normal values is not stored
    int bias = 0;
    Specials specials = Specials::ieee;

    MP_HD constexpr int width() const { return 1 + exponent_bits + mantissa_bits; }
    MP_HD constexpr int significant_bits() const { return mantissa_bits + 1; }
    MP_HD constexpr bool has_infinity() const { return specials == Specials::ieee; }

    friend bool operator==(const FloatFormat&, const FloatFormat&) = default;
};

// The one table. Sources: IEEE 754-2019 (fp64, fp32, fp16), bf16 as the upper half of fp32, NVIDIA's
// tf32 (8 exponent and 10 mantissa bits), OCP 8-bit Floating Point Specification 1.0 (e4m3, e5m2).
inline constexpr FloatFormat kFloatFormats[] = {
    {DType::fp64, 11, 52, 1023, Specials::ieee}, {DType::fp32, 8, 23, 127, Specials::ieee},
    {DType::tf32, 8, 10, 127, Specials::ieee},   {DType::fp16, 5, 10, 15, Specials::ieee},
    {DType::bf16, 8, 7, 127, Specials::ieee},    {DType::e4m3, 4, 3, 7, Specials::nan_only},
    {DType::e5m2, 5, 2, 15, Specials::ieee},
};

// The format of a dtype; null when it has none (integers) or when it is not known (unknown, lowp).
constexpr const FloatFormat* format_of(DType d) {
    for (const FloatFormat& format : kFloatFormats)
        if (format.dtype == d) return &format;
    return nullptr;
}

// ---- Derived values. Each result is a double, and exact. -----------------------------------------

// 2^n for n in [-1074, 1023].
constexpr double power_of_two(int n) {
    double result = 1;
    for (; n > 0; --n) result *= 2;
    for (; n < 0; ++n) result /= 2;
    return result;
}

constexpr int min_exponent(const FloatFormat& f) { return 1 - f.bias; }
constexpr int max_exponent(const FloatFormat& f) {
    const int top_field = (1 << f.exponent_bits) - 1;
    return (f.has_infinity() ? top_field - 1 : top_field) - f.bias;
}

// Distance from 1 to the next value; and the largest relative error of one rounding to nearest.
constexpr double epsilon(const FloatFormat& f) { return power_of_two(-f.mantissa_bits); }
constexpr double unit_roundoff(const FloatFormat& f) { return epsilon(f) / 2; }

constexpr double max_finite(const FloatFormat& f) {
    // With nan_only, the last pattern is NaN, so the largest value is one step lower.
    const double steps_below_two = f.has_infinity() ? 1 : 2;
    return (2 - steps_below_two * epsilon(f)) * power_of_two(max_exponent(f));
}

constexpr double min_normal(const FloatFormat& f) { return power_of_two(min_exponent(f)); }
constexpr double min_subnormal(const FloatFormat& f) {
    return power_of_two(min_exponent(f) - f.mantissa_bits);
}

// The smallest positive integer that the format cannot represent: 2049 for fp16, 257 for bf16. A sum of
// ones stops growing one below it.
constexpr std::uint64_t first_inexact_integer(const FloatFormat& f) {
    return (std::uint64_t{1} << f.significant_bits()) + 1;
}

// Midpoint between the largest value and the next one of the same spacing. A larger value becomes infinity
// (or NaN), not max_finite. Infinity for fp64, because no double overflows it.
constexpr double overflow_threshold(const FloatFormat& f) {
    if (f.dtype == DType::fp64) return std::numeric_limits<double>::infinity();
    return max_finite(f) + power_of_two(max_exponent(f) - f.mantissa_bits - 1);
}
// Whether the threshold itself overflows. Ties go to even, and the largest mantissa is odd, except where
// NaN has taken the last pattern: 65520 becomes inf in fp16, 464 becomes 448 in e4m3.
constexpr bool threshold_overflows(const FloatFormat& f) { return f.has_infinity(); }

// Values up to and including this one become 0: half of the smallest subnormal, because the tie goes to
// even. 0 for fp64.
constexpr double underflow_threshold(const FloatFormat& f) {
    return f.dtype == DType::fp64 ? 0.0 : min_subnormal(f) / 2;
}

// ---- Well-known values of these formats, checked against the table. ------------------------------

static_assert(max_finite(*format_of(DType::fp64)) == std::numeric_limits<double>::max());
static_assert(min_normal(*format_of(DType::fp64)) == std::numeric_limits<double>::min());
static_assert(min_subnormal(*format_of(DType::fp64)) == std::numeric_limits<double>::denorm_min());
static_assert(epsilon(*format_of(DType::fp64)) == std::numeric_limits<double>::epsilon());
static_assert(max_finite(*format_of(DType::fp32)) == std::numeric_limits<float>::max());
static_assert(min_normal(*format_of(DType::fp32)) == std::numeric_limits<float>::min());
static_assert(min_subnormal(*format_of(DType::fp32)) == std::numeric_limits<float>::denorm_min());
static_assert(epsilon(*format_of(DType::fp32)) == std::numeric_limits<float>::epsilon());
static_assert(first_inexact_integer(*format_of(DType::fp32)) == 16777217);
static_assert(epsilon(*format_of(DType::tf32)) == 0.0009765625);
static_assert(min_normal(*format_of(DType::tf32)) == std::numeric_limits<float>::min());
static_assert(max_finite(*format_of(DType::fp16)) == 65504);
static_assert(overflow_threshold(*format_of(DType::fp16)) == 65520);
static_assert(threshold_overflows(*format_of(DType::fp16)));
static_assert(min_normal(*format_of(DType::fp16)) == 6.103515625e-05);
static_assert(min_subnormal(*format_of(DType::fp16)) == 5.9604644775390625e-08);
static_assert(underflow_threshold(*format_of(DType::fp16)) == 2.98023223876953125e-08);
static_assert(epsilon(*format_of(DType::fp16)) == 0.0009765625);
static_assert(first_inexact_integer(*format_of(DType::fp16)) == 2049);
static_assert(epsilon(*format_of(DType::bf16)) == 0.0078125);
static_assert(unit_roundoff(*format_of(DType::bf16)) == 0.00390625);
static_assert(first_inexact_integer(*format_of(DType::bf16)) == 257);
static_assert(max_finite(*format_of(DType::bf16)) == 0x1.FEp+127);
static_assert(min_subnormal(*format_of(DType::bf16)) == 0x1p-133);
static_assert(max_finite(*format_of(DType::e4m3)) == 448);
static_assert(overflow_threshold(*format_of(DType::e4m3)) == 464);
static_assert(!threshold_overflows(*format_of(DType::e4m3)));
static_assert(min_normal(*format_of(DType::e4m3)) == 0.015625);
static_assert(min_subnormal(*format_of(DType::e4m3)) == 0.001953125);
static_assert(first_inexact_integer(*format_of(DType::e4m3)) == 17);
static_assert(max_finite(*format_of(DType::e5m2)) == 57344);
static_assert(overflow_threshold(*format_of(DType::e5m2)) == 61440);
static_assert(min_normal(*format_of(DType::e5m2)) == 6.103515625e-05);
static_assert(min_subnormal(*format_of(DType::e5m2)) == 1.52587890625e-05);
static_assert(first_inexact_integer(*format_of(DType::e5m2)) == 9);

}  // namespace mp
