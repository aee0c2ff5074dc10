#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/numerics/convert.hpp"

// Elements as the GPU kernels hold them: 32-bit words with one fp32 or two 16-bit patterns ("lanes"). An 8-bit pattern
// takes the upper half of a lane, so that e5m2 is an fp16. Everything here is compiled for the host too, where it is
// tested over every pattern; only the instructions that a GPU has and a host has not differ.

namespace mp::cuda {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

// 16 bytes of memory, loaded at once.
struct alignas(16) Vector {
    U32 word[4];
};

MP_HD inline Vector load(const Vector* from) {
#if defined(__CUDA_ARCH__)
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    return {{v.x, v.y, v.z, v.w}};
#else
    return *from;
#endif
}

MP_HD inline float as_float(U32 bits) { return __builtin_bit_cast(float, bits); }
MP_HD inline U32 bits_of(float x) { return __builtin_bit_cast(U32, x); }
MP_HD inline double as_double(U64 bits) { return __builtin_bit_cast(double, bits); }
MP_HD inline U64 bits_of(double x) { return __builtin_bit_cast(U64, x); }
MP_HD inline double magnitude(double x) { return as_double(bits_of(x) & ~(U64{1} << 63)); }

// a * b + c, rounded once.
MP_HD inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

MP_HD inline U32 larger(U32 a, U32 b) { return a > b ? a : b; }
MP_HD inline U64 larger(U64 a, U64 b) { return a > b ? a : b; }
MP_HD inline U32 smaller(U32 a, U32 b) { return a < b ? a : b; }

// The larger and the smaller of each lane.
MP_HD inline U32 larger_lanes(U32 a, U32 b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return __vmaxu2(a, b);
#else
    return larger(a & 0xFFFF0000u, b & 0xFFFF0000u) | larger(a & 0xFFFFu, b & 0xFFFFu);
#endif
}
MP_HD inline U32 smaller_lanes(U32 a, U32 b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return __vminu2(a, b);
#else
    return smaller(a & 0xFFFF0000u, b & 0xFFFF0000u) | smaller(a & 0xFFFFu, b & 0xFFFFu);
#endif
}

// What the kernels need of a format. A key is the pattern of a magnitude as it lies in its lane: keys have the order
// of the magnitudes.
template <DType D>
struct Format {
    static constexpr FloatFormat kTable = kFormat<D>;
    using Raw = Pattern<D>;
    static constexpr int kBytes = static_cast<int>(sizeof(Raw));
    static constexpr int kPerVector = 16 / kBytes;
    static constexpr int kShift = kBytes == 1 ? 8 : 0;
    using Key = std::conditional_t<kBytes == 8, U64, U32>;
    static constexpr Key kOne = Key{1} << kShift;
    static constexpr Key kMagnitude = ((Key{1} << (kTable.width() - 1)) - 1) << kShift;
    static constexpr Key kBeyondFinite = static_cast<Key>(detail::beyond_finite(kTable)) << kShift;
    static constexpr Key kSaturated = kBeyondFinite - kOne;
    static constexpr Key kMinNormal = Key{1} << (kTable.mantissa_bits + kShift);
    static constexpr bool kPaired = kBytes <= 2;  // two elements in a word

    MP_HD static constexpr Key key(Raw raw) { return (static_cast<Key>(raw) << kShift) & kMagnitude; }
    MP_HD static constexpr Raw raw(Key key) { return static_cast<Raw>(key >> kShift); }
};

// The value of a finite 16-bit lane pattern, as fp32.
template <DType D>
MP_HD inline float lane_value(U32 lane) {
    if constexpr (D == DType::bf16) {
        return as_float(lane << 16);
    } else {
        U32 sign = (lane & 0x8000u) << 16, moved = (lane & 0x7FFFu) << 13;
        constexpr int kBias = D == DType::e4m3 ? 7 : 15;
        if constexpr (D == DType::e4m3) moved >>= 1;  // 4 bits of exponent instead of 5
        // Exponent and mantissa at their fp32 position; the factor corrects the bias, also of subnormals.
        return as_float(moved | sign) * as_float(static_cast<U32>(127 + 127 - kBias) << 23);
    }
}

// The values of a word's lanes. Non-finite patterns give arbitrary numbers: they are found by their keys.
template <DType D>
MP_HD inline void lane_values(U32 word, float& low, float& high) {
    if constexpr (D == DType::bf16) {
        low = as_float(word << 16);
        high = as_float(word & 0xFFFF0000u);
        return;
    }
#if defined(__CUDA_ARCH__)
    // The hardware's own conversion. As an fp16, an e4m3 whose magnitude is moved by one bit is too small by 2^-8.
    if constexpr (D == DType::e4m3) word = (word & 0x80008000u) | ((word & 0x7FFF7FFFu) >> 1);
    if constexpr (D != DType::bf16)
        asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
            : "=f"(low), "=f"(high)
            : "r"(word));
    if constexpr (D == DType::e4m3) low *= 256.0f, high *= 256.0f;
#else
    low = lane_value<D>(word & 0xFFFFu);
    high = lane_value<D>(word >> 16);
#endif
}

// Any finite pattern as a double; not for NaN and infinity.
template <DType D>
MP_HD inline double value_of(Pattern<D> raw) {
    if constexpr (D == DType::fp64) {
        return as_double(raw);
    } else if constexpr (D == DType::fp32) {
        return static_cast<double>(as_float(raw));
    } else {
        return static_cast<double>(lane_value<D>(static_cast<U32>(raw) << Format<D>::kShift));
    }
}

template <DType D>
MP_HD inline Pattern<D> read(const void* from) {
    using Raw = Pattern<D>;
#if defined(__CUDA_ARCH__)
    return __ldg(static_cast<const Raw*>(from));
#else
    Raw raw;
    __builtin_memcpy(&raw, from, sizeof(raw));
    return raw;
#endif
}

// The sum of two counters in the lanes of a word.
MP_HD inline U32 sum_of_lanes(U32 lanes) { return (lanes & 0xFFFFu) + (lanes >> 16); }

// Bin of the exponent histogram of a magnitude above 0, as in kernels/cpu.
MP_HD inline U32 bin_of(double x) {
    const int field = static_cast<int>(bits_of(x) >> 52 & 0x7FF) - 1023 + 127;
    return field < 0 ? 0u : field > 254 ? 254u : static_cast<U32>(field);
}

}  // namespace mp::cuda
