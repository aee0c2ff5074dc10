#pragma once

#include <cstdint>
#include <optional>

#include "kernels/numerics/float_format.hpp"

// Exact conversions between fp32 or fp64 and any format of the table, rounded to nearest with ties to even.
// They use integer arithmetic only, so neither fast-math nor a GPU's flush-to-zero changes a bit.
//
// A NaN stays NaN, keeps its sign and the upper bits of its payload, and becomes quiet. A value beyond
// overflow_threshold becomes infinity. e4m3 has no infinity, so there it becomes NaN, as in PyTorch's
// `.to(torch.float8_e4m3fn)`. CUDA's `__nv_fp8_e4m3(x)` saturates instead: Overflow::saturate. tf32 is
// rounded to nearest even here; tensor cores may treat an unrounded fp32 differently.

namespace mp {

enum class Overflow : std::uint8_t {
    as_format,  // infinity where the format has one, else NaN
    saturate,   // the largest finite value, for infinity too; NaN stays NaN
};

namespace detail {

inline constexpr std::uint64_t kOne = 1;
inline constexpr int kDoubleBias = 1023;
inline constexpr int kDoubleMantissa = 52;
inline constexpr std::uint64_t kDoubleMantissaMask = (kOne << kDoubleMantissa) - 1;
inline constexpr std::uint64_t kDoubleExponentField = 0x7FF;

// Pattern of +inf (ieee) or of NaN (nan_only): the largest finite pattern plus one.
MP_HD constexpr std::uint64_t beyond_finite(const FloatFormat& f) {
    const std::uint64_t all_ones = (kOne << (f.width() - 1)) - 1;
    return f.has_infinity() ? all_ones - ((kOne << f.mantissa_bits) - 1) : all_ones;
}

MP_HD constexpr std::uint64_t nan_pattern(const FloatFormat& f, std::uint64_t double_mantissa) {
    if (!f.has_infinity()) return beyond_finite(f);
    const std::uint64_t payload = double_mantissa >> (kDoubleMantissa - f.mantissa_bits);
    return beyond_finite(f) | payload | (kOne << (f.mantissa_bits - 1));
}

// value / 2^shift to the nearest integer, ties to even.
MP_HD constexpr std::uint64_t shift_right_to_even(std::uint64_t value, int shift) {
    if (shift <= 0) return value;
    if (shift > kDoubleMantissa + 1) return 0;  // value < 2^53: less than half
    const std::uint64_t kept = value >> shift;
    const std::uint64_t dropped = value & ((kOne << shift) - 1);
    const std::uint64_t half = kOne << (shift - 1);
    return kept + (dropped > half || (dropped == half && (kept & 1)) ? 1 : 0);
}

// Pattern of the magnitude of a finite double. The significand is an integer multiple of the format's step
// at that exponent. Its leading 1 increments the exponent field, and so does a carry.
MP_HD constexpr std::uint64_t finite_pattern(const FloatFormat& f, std::uint64_t field,
                                             std::uint64_t mantissa) {
    const bool normal = field != 0;
    const std::uint64_t significand = normal ? mantissa | (kOne << kDoubleMantissa) : mantissa;
    const int exponent = (normal ? static_cast<int>(field) : 1) - kDoubleBias;
    const int lowest = 1 - f.bias;
    const int scale = exponent > lowest ? exponent : lowest;
    const int shift = (scale - f.mantissa_bits) - (exponent - kDoubleMantissa);
    return shift_right_to_even(significand, shift) +
           (static_cast<std::uint64_t>(scale - lowest) << f.mantissa_bits);
}

MP_HD constexpr std::uint64_t encode_bits(const FloatFormat& f, std::uint64_t bits, Overflow overflow) {
    const std::uint64_t field = (bits >> kDoubleMantissa) & kDoubleExponentField;
    const std::uint64_t mantissa = bits & kDoubleMantissaMask;
    const std::uint64_t sign = (bits >> 63) << (f.width() - 1);
    const std::uint64_t beyond = beyond_finite(f);
    const bool special = field == kDoubleExponentField;
    if (special && mantissa != 0) return sign | nan_pattern(f, mantissa);
    const std::uint64_t pattern = special ? beyond : finite_pattern(f, field, mantissa);
    if (pattern < beyond) return sign | pattern;
    return sign | (overflow == Overflow::saturate ? beyond - 1 : beyond);
}

// The double (as bits) that a pattern stands for. Exact: every format is a subset of fp64.
MP_HD constexpr std::uint64_t decode_bits(const FloatFormat& f, std::uint64_t pattern) {
    const std::uint64_t magnitude = pattern & ((kOne << (f.width() - 1)) - 1);
    const std::uint64_t sign = ((pattern >> (f.width() - 1)) & 1) << 63;
    const std::uint64_t mantissa = magnitude & ((kOne << f.mantissa_bits) - 1);
    const int field = static_cast<int>(magnitude >> f.mantissa_bits);
    const int widen = kDoubleMantissa - f.mantissa_bits;
    const std::uint64_t infinity = kDoubleExponentField << kDoubleMantissa;
    if (magnitude >= beyond_finite(f)) {
        if (f.has_infinity() && mantissa == 0) return sign | infinity;
        return sign | infinity | (mantissa << widen) | (kOne << (kDoubleMantissa - 1));
    }
    if (f.mantissa_bits == kDoubleMantissa || magnitude == 0) return sign | magnitude;
    if (field != 0)
        return sign | (static_cast<std::uint64_t>(field - f.bias + kDoubleBias) << kDoubleMantissa) |
               (mantissa << widen);
    // Subnormal in this format but normal as a double: shift the leading 1 to the implicit bit.
    int shift = 0;
    while (!((mantissa << shift) >> f.mantissa_bits)) ++shift;
    const auto exponent = static_cast<std::uint64_t>(1 - f.bias - shift + kDoubleBias);
    const std::uint64_t fraction = ((mantissa << shift) << widen) & kDoubleMantissaMask;
    return sign | (exponent << kDoubleMantissa) | fraction;
}

template <int Width>
struct PatternOf {
    using type = std::uint64_t;
};
template <>
struct PatternOf<8> {
    using type = std::uint8_t;
};
template <>
struct PatternOf<16> {
    using type = std::uint16_t;
};
template <>
struct PatternOf<19> {
    using type = std::uint32_t;
};
template <>
struct PatternOf<32> {
    using type = std::uint32_t;
};

}  // namespace detail

// The table's entry as a constant that device code can read.
template <DType D>
inline constexpr FloatFormat kFormat = *format_of(D);

// The unsigned integer that holds a pattern: std::uint16_t for fp16.
template <DType D>
using Pattern = typename detail::PatternOf<kFormat<D>.width()>::type;

template <DType D>
MP_HD constexpr Pattern<D> encode(double x, Overflow overflow = Overflow::as_format) {
    constexpr FloatFormat f = kFormat<D>;
    return static_cast<Pattern<D>>(detail::encode_bits(f, __builtin_bit_cast(std::uint64_t, x), overflow));
}

template <DType D>
MP_HD constexpr Pattern<D> encode(float x, Overflow overflow = Overflow::as_format) {
    constexpr FloatFormat f = kFormat<D>;
    constexpr FloatFormat fp32 = kFormat<DType::fp32>;
    // Widened as bits, because a GPU may flush a subnormal float during conversion.
    const std::uint64_t wide = detail::decode_bits(fp32, __builtin_bit_cast(std::uint32_t, x));
    return static_cast<Pattern<D>>(detail::encode_bits(f, wide, overflow));
}

template <DType D>
MP_HD constexpr double decode(Pattern<D> pattern) {
    constexpr FloatFormat f = kFormat<D>;
    return __builtin_bit_cast(double, detail::decode_bits(f, pattern));
}

// The same as fp32. Every format but fp64 is exact in fp32; fp64 is rounded.
template <DType D>
MP_HD constexpr float decode_float(Pattern<D> pattern) {
    constexpr FloatFormat f = kFormat<D>;
    constexpr FloatFormat fp32 = kFormat<DType::fp32>;
    const std::uint64_t narrow =
        detail::encode_bits(fp32, detail::decode_bits(f, pattern), Overflow::as_format);
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(narrow));
}

// The value that x has after a store in the format.
template <DType D>
MP_HD constexpr double round_to(double x, Overflow overflow = Overflow::as_format) {
    return decode<D>(encode<D>(x, overflow));
}

MP_HD constexpr double round_to(const FloatFormat& f, double x, Overflow overflow = Overflow::as_format) {
    const std::uint64_t pattern = detail::encode_bits(f, __builtin_bit_cast(std::uint64_t, x), overflow);
    return __builtin_bit_cast(double, detail::decode_bits(f, pattern));
}

// The same by dtype; nothing for a dtype without a format (integers, unknown, lowp).
constexpr std::optional<double> round_to(DType d, double x, Overflow overflow = Overflow::as_format) {
    const FloatFormat* f = format_of(d);
    if (!f) return std::nullopt;
    return round_to(*f, x, overflow);
}

}  // namespace mp
