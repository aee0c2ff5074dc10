// Sums that start in fp32 lanes and end in fp64 lanes. Included once per instruction set.
#if defined(MP_CPU_SHORT_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_SHORT_SUMS_INL
#undef MP_CPU_SHORT_SUMS_INL
#else
#define MP_CPU_SHORT_SUMS_INL
#endif

#include "kernels/cpu/formats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

inline constexpr std::size_t kSumLanes = 16;
inline constexpr std::size_t kParts = kSumLanes / kLanes32;          // vectors of 16 floats
inline constexpr std::size_t kWideParts = kSumLanes / 2 / kLanes64;  // vectors of 8 doubles

// An fp32 lane takes 12 values before it is added to fp64. The error is at most 12 roundings, plus two of
// the value itself (e * e), plus two when lanes are added: 16 units of 2^-24, which is below 1e-6 of the
// sum of the magnitudes.
inline constexpr std::size_t kValuesPerLane = 12;

// Range of a block's largest magnitude in which squares and products neither overflow nor lose much to
// subnormals: 4,096 subnormal products lose less than 2^-38 of its square.
inline constexpr std::uint32_t kLowestQuick = (127u - 50) << 23;
inline constexpr std::uint32_t kHighestQuick = (127u + 60) << 23;
inline bool is_quick(std::uint32_t largest) {
    return largest == 0 || (largest >= kLowestQuick && largest <= kHighestQuick);
}

// a * b + c, rounded once. Emulated where the instruction set has no such instruction, so that the bits are
// the same.
HWY_INLINE VF fused(VF a, VF b, VF c) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
    const DF d;
    alignas(16) float x[kLanes32], y[kLanes32], z[kLanes32];
    hn::Store(a, d, x);
    hn::Store(b, d, y);
    hn::Store(c, d, z);
    for (std::size_t i = 0; i < kLanes32; ++i) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
    return hn::Load(d, z);
#else
    return hn::MulAdd(a, b, c);
#endif
}

// 16 fp32 lanes that are added to 8 fp64 lanes.
struct ShortSum {
    VF lanes[kParts];
    HWY_INLINE ShortSum() {
        for (std::size_t i = 0; i < kParts; ++i) lanes[i] = hn::Zero(DF());
    }
    HWY_INLINE void add(std::size_t part, VF v) { lanes[part] = hn::Add(lanes[part], v); }
    HWY_INLINE void add_product(std::size_t part, VF a, VF b) { lanes[part] = fused(a, b, lanes[part]); }
};

struct LongSum {
    V64 lanes[kWideParts];
    HWY_INLINE LongSum() {
        for (std::size_t i = 0; i < kWideParts; ++i) lanes[i] = hn::Zero(D64());
    }
    // Adds lanes i and i + 8 to lane i.
    HWY_INLINE void take(const ShortSum& from) {
        const hn::Half<DF> half;
        if constexpr (kParts == 1) {
            const auto sum = hn::Add(hn::LowerHalf(half, from.lanes[0]), hn::UpperHalf(half, from.lanes[0]));
            lanes[0] = hn::Add(lanes[0], hn::PromoteTo(D64(), sum));
        } else {
            for (std::size_t i = 0; i < kParts / 2; ++i) {
                const VF sum = hn::Add(from.lanes[i], from.lanes[i + kParts / 2]);
                lanes[2 * i] = hn::Add(lanes[2 * i], hn::PromoteTo(D64(), hn::LowerHalf(half, sum)));
                lanes[2 * i + 1] = hn::Add(lanes[2 * i + 1], hn::PromoteTo(D64(), hn::UpperHalf(half, sum)));
            }
        }
    }
    double total() const { return sum_of(lanes); }
};

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
