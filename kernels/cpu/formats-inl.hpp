// Loads of each format, widened exactly. Included once per instruction set.
#if defined(MP_CPU_FORMATS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_FORMATS_INL
#undef MP_CPU_FORMATS_INL
#else
#define MP_CPU_FORMATS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/blocks.hpp"
#include "kernels/numerics/convert.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D64 = hn::ScalableTag<double>;
using D32 = hn::Rebind<float, D64>;  // as many floats as there are doubles
using V64 = hn::Vec<D64>;
using V32 = hn::Vec<D32>;
inline constexpr std::size_t kLanes64 = hn::MaxLanes(D64());

// Full vectors of floats, for the fp32 paths.
using DF = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<DF>;
using VF = hn::Vec<DF>;
inline constexpr std::size_t kLanes32 = hn::MaxLanes(DF());

// What the kernels need of a format: its patterns as integers, and two loads.
template <DType D>
struct Patterns {
    static constexpr DType kDType = D;
    using Raw = Pattern<D>;
    static constexpr FloatFormat kTable = kFormat<D>;
    static constexpr Raw kMagnitude = static_cast<Raw>((std::uint64_t{1} << (kTable.width() - 1)) - 1);
    static constexpr Raw kBeyondFinite = static_cast<Raw>(detail::beyond_finite(kTable));
    static constexpr Raw kMinNormal = static_cast<Raw>(std::uint64_t{1} << kTable.mantissa_bits);
};

struct Fp64 : Patterns<DType::fp64> {
    static constexpr bool kExactSquares = false;
    static HWY_INLINE V64 load(const Raw* p) {
        return hn::BitCast(D64(), hn::LoadU(hn::RebindToUnsigned<D64>(), p));
    }
};

// Every narrower format is widened to fp32. Squares and products of two such values are exact in fp64.
template <class Self, DType D>
struct Narrow : Patterns<D> {
    static constexpr bool kExactSquares = true;
    using Raw = typename Patterns<D>::Raw;
    static HWY_INLINE V64 load(const Raw* p) { return hn::PromoteTo(D64(), Self::load32(D32(), p)); }
    // Loads two vectors of the group at p. All parts together are the group, in an order that is the same
    // for every vector width.
    static HWY_INLINE void load_pair(const Raw* p, std::size_t part, VF& a, VF& b) {
        a = Self::load32(DF(), p + part * kLanes32);
        b = Self::load32(DF(), p + kGroup / 2 + part * kLanes32);
    }
    // Loads two vectors of neighbouring elements.
    static HWY_INLINE void load_two(const Raw* p, VF& a, VF& b) {
        a = Self::load32(DF(), p);
        b = Self::load32(DF(), p + kLanes32);
    }
};

struct Fp32 : Narrow<Fp32, DType::fp32> {
    template <class D>
    static HWY_INLINE hn::Vec<D> load32(D d, const Raw* p) {
        return hn::BitCast(d, hn::LoadU(hn::RebindToUnsigned<D>(), p));
    }
};

struct Bf16 : Narrow<Bf16, DType::bf16> {
    template <class D>
    static HWY_INLINE hn::Vec<D> load32(D d, const Raw* p) {
        const hn::RebindToUnsigned<D> d32;
        return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(hn::Rebind<Raw, D>(), p))));
    }
    // Loads the even and the odd elements: no element changes its lane.
    static HWY_INLINE void load_pair(const Raw* p, std::size_t part, VF& a, VF& b) {
        const DU d32;
        const auto both = hn::BitCast(d32, hn::LoadU(hn::Repartition<Raw, DF>(), p + part * 2 * kLanes32));
        a = hn::BitCast(DF(), hn::ShiftLeft<16>(both));
        b = hn::BitCast(DF(), hn::And(both, hn::Set(d32, 0xFFFF0000u)));
    }
#if HWY_TARGET <= HWY_AVX3
    // A permutation with zeros in the lower half of each lane is one instruction instead of two.
    static HWY_INLINE void load_two(const Raw* p, VF& a, VF& b) {
        alignas(64) static constexpr std::uint16_t kFirst[32] = {0, 0,  0, 1,  0, 2,  0, 3,  0, 4, 0,
                                                                 5, 0,  6, 0,  7, 0,  8, 0,  9, 0, 10,
                                                                 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
        __mmask32 upper_halves = 0xAAAAAAAA;
        asm("" : "+k"(upper_halves));  // for a constant mask the compiler would emit an extra instruction
        const __m512i all = _mm512_loadu_si512(p);
        const __m512i first = _mm512_load_si512(kFirst);
        const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
        a = VF{_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(upper_halves, first, all))};
        b = VF{_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(upper_halves, second, all))};
    }
#endif
};

struct Fp16 : Narrow<Fp16, DType::fp16> {
    template <class D>
    static HWY_INLINE hn::Vec<D> load32(D d, const Raw* p) {
        const hn::Rebind<hwy::float16_t, D> d16;
        return hn::PromoteTo(d, hn::BitCast(d16, hn::LoadU(hn::Rebind<Raw, D>(), p)));
    }
};

// e5m2 is the upper half of an fp16.
struct E5m2 : Narrow<E5m2, DType::e5m2> {
    template <class D>
    static HWY_INLINE hn::Vec<D> load32(D d, const Raw* p) {
        const hn::Rebind<std::uint16_t, D> d16;
        const auto half = hn::ShiftLeft<8>(hn::PromoteTo(d16, hn::LoadU(hn::Rebind<Raw, D>(), p)));
        return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), half));
    }
};

// Moves exponent and mantissa to their fp32 position and adds the bias. Below the smallest normal value,
// the same bits with the exponent of 2^-6 are too large by 2^-6. NaN becomes a finite value: the kernels
// detect NaN by its pattern.
struct E4m3 : Narrow<E4m3, DType::e4m3> {
    template <class D>
    static HWY_INLINE hn::Vec<D> load32(D d, const Raw* p) {
        const hn::RebindToUnsigned<D> d32;
        const auto bits = hn::PromoteTo(d32, hn::LoadU(hn::Rebind<Raw, D>(), p));
        const auto magnitude = hn::And(bits, hn::Set(d32, 0x7F));
        const auto moved = hn::ShiftLeft<20>(magnitude);
        const auto normal = hn::BitCast(d, hn::Add(moved, hn::Set(d32, 120u << 23)));
        const auto raised = hn::BitCast(d, hn::Add(moved, hn::Set(d32, 121u << 23)));
        const auto below = hn::Sub(raised, hn::Set(d, 0.015625f));
        const auto is_below = hn::RebindMask(d, hn::Lt(magnitude, hn::Set(d32, 8)));
        const auto sign = hn::BitCast(d, hn::ShiftLeft<24>(hn::And(bits, hn::Set(d32, 0x80))));
        return hn::Or(hn::IfThenElse(is_below, below, normal), sign);
    }
};

// Pads a last group with zeros, which change no sum and no extreme.
template <class F>
struct Tail {
    alignas(64) typename F::Raw values[kGroup] = {};
    Tail(const typename F::Raw* from, std::size_t elements) {
        std::memcpy(values, from, elements * sizeof(values[0]));
    }
};

template <class F>
HWY_INLINE void widen_group(const typename F::Raw* p, double* out) {
    for (std::size_t i = 0; i < kGroup; i += kLanes64) hn::StoreU(F::load(p + i), D64(), out + i);
}

// Loads of formats with a smaller range than fp32 make numbers of NaN and infinity: of e4m3 always, of the others
// where the instruction set has no conversion from fp16. Both become NaN.
template <class F>
void restore_nonfinite(const typename F::Raw* p, std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i)
        if ((p[i] & F::kMagnitude) >= F::kBeyondFinite) out[i] = __builtin_nan("");
}

template <class F>
void widen_block(const void* data, std::size_t elements, double* out) {
    const auto* p = static_cast<const typename F::Raw*>(data);
    std::size_t i = 0;
    for (; i + kGroup <= elements; i += kGroup) widen_group<F>(p + i, out + i);
    if (i < elements) {
        double group[kGroup];
        widen_group<F>(Tail<F>(p + i, elements - i).values, group);
        std::memcpy(out + i, group, (elements - i) * sizeof(double));
    }
    if constexpr (F::kTable.exponent_bits < 8) restore_nonfinite<F>(p, elements, out);
}

// The value of a magnitude's pattern. Used once per block, for extremes.
template <class F>
double magnitude_value(typename F::Raw bits) {
    return decode<F::kDType>(bits);
}

template <class D, class V>
HWY_INLINE typename hn::TFromD<D> lane_max(D d, V v) {
    alignas(64) hn::TFromD<D> lanes[hn::MaxLanes(D())];
    hn::Store(v, d, lanes);
    for (std::size_t half = hn::MaxLanes(D()) / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i)
            lanes[i] = lanes[i + half] > lanes[i] ? lanes[i + half] : lanes[i];
    return lanes[0];
}

// The sum of the lanes of `Count` vectors, added in order.
template <std::size_t Count>
HWY_INLINE double sum_of(const V64 (&lanes)[Count]) {
    alignas(64) double values[Count * kLanes64];
    for (std::size_t i = 0; i < Count; ++i) hn::Store(lanes[i], D64(), values + i * kLanes64);
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
