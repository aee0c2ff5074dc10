#include "tests/bench/measure_loops.hpp"

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/numerics/float_format.hpp"

namespace mp::bench {
namespace {

constexpr std::size_t kPiece = 512;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) std::uint64_t read_512(const char* p, std::size_t bytes) {
    __m512i sums[8] = {};
    for (std::size_t i = 0; i + kPiece <= bytes; i += kPiece)
        for (std::size_t k = 0; k < 8; ++k) {
            __builtin_prefetch(p + i + 64 * k + 2048);
            sums[k] = _mm512_add_epi64(sums[k], _mm512_loadu_si512(p + i + 64 * k));
        }
    for (std::size_t k = 1; k < 8; ++k) sums[0] = _mm512_add_epi64(sums[0], sums[k]);
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums[0]));
}

__attribute__((target("avx2"))) std::uint64_t read_256(const char* p, std::size_t bytes) {
    __m256i sums[8] = {};
    for (std::size_t i = 0; i + kPiece <= bytes; i += kPiece)
        for (std::size_t k = 0; k < 16; ++k) {
            if (k % 2 == 0) __builtin_prefetch(p + i + 32 * k + 2048);
            const auto* from = reinterpret_cast<const __m256i*>(p + i + 32 * k);
            sums[k % 8] = _mm256_add_epi64(sums[k % 8], _mm256_loadu_si256(from));
        }
    for (std::size_t k = 1; k < 8; ++k) sums[0] = _mm256_add_epi64(sums[0], sums[k]);
    alignas(32) std::uint64_t lanes[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums[0]);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#endif

std::uint64_t read_64(const char* p, std::size_t bytes) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
        std::uint64_t word = 0;
        __builtin_memcpy(&word, p + i, 8);
        sum += word;
    }
    return sum;
}

float widened(std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}
float widened(float x) { return x; }

template <class T>
TensorStats naive(const T* data, std::size_t n, const FloatFormat& format, ExponentHistogram* histogram) {
    TensorStats s;
    const double smallest = min_normal(format), largest = max_finite(format);
    s.count = n;
    for (std::size_t i = 0; i < n; ++i) {
        const double x = widened(data[i]);
        if (std::isnan(x)) {
            ++s.nan;
        } else if (std::isinf(x)) {
            ++(x > 0 ? s.pos_inf : s.neg_inf);
        } else if (x == 0) {
            ++s.zero;
        } else {
            const double a = std::fabs(x);
            if (a < smallest) ++s.subnormal;
            if (a == largest) ++s.saturated;
            s.amax = std::max(s.amax, a);
            s.amin = s.amin == 0 ? a : std::min(s.amin, a);
            s.sum += x;
            s.sum_squares += x * x;
            if (histogram) ++histogram->bins[__builtin_bit_cast(std::uint32_t, static_cast<float>(a)) >> 23];
        }
    }
    return s;
}

}  // namespace

std::uint64_t read(const void* data, std::size_t bytes) {
    const auto* p = static_cast<const char*>(data);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return read_512(p, bytes);
    if (__builtin_cpu_supports("avx2")) return read_256(p, bytes);
#endif
    return read_64(p, bytes);
}

std::uint64_t read_two(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
    constexpr std::size_t kStep = 8192;
    const std::size_t ratio = b_bytes / a_bytes;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + kStep <= a_bytes; i += kStep) {
        sum += read(static_cast<const char*>(a) + i, kStep);
        sum += read(static_cast<const char*>(b) + i * ratio, kStep * ratio);
    }
    return sum;
}

TensorStats naive_statistics_bf16(const std::uint16_t* data, std::size_t n, ExponentHistogram* histogram) {
    return naive(data, n, *format_of(DType::bf16), histogram);
}

TensorStats naive_statistics_fp32(const float* data, std::size_t n, ExponentHistogram* histogram) {
    return naive(data, n, *format_of(DType::fp32), histogram);
}

Divergence naive_divergence_bf16(const std::uint16_t* real, const float* twin, std::size_t n) {
    const FloatFormat& format = *format_of(DType::bf16);
    Divergence d;
    d.count = n;
    for (std::size_t i = 0; i < n; ++i) {
        const double x = widened(real[i]), y = twin[i];
        if (x != y) ++d.differ;
        if (!std::isfinite(x) || !std::isfinite(y)) continue;
        const double e = x - y;
        const int exponent = y == 0 ? min_exponent(format) : std::max(std::ilogb(y), min_exponent(format));
        const double ulps = std::fabs(e) / std::ldexp(1.0, exponent - format.mantissa_bits);
        ++d.compared;
        if (ulps > 1) ++d.ulp_above_one;
        d.ulp_max = std::max(d.ulp_max, ulps);
        d.max_abs = std::max(d.max_abs, std::fabs(e));
        d.twin_amax = std::max(d.twin_amax, std::fabs(y));
        d.ee += e * e;
        d.yy += y * y;
        d.xx += x * x;
        d.xy += x * y;
        d.e += e;
        d.abs_e += std::fabs(e);
        d.abs_y += std::fabs(y);
        if (x == 0 && y != 0) {
            ++d.flushed;
            d.flushed_abs += std::fabs(y);
        }
    }
    return d;
}

}  // namespace mp::bench
