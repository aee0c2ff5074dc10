// Exact exponent histogram of a block. Included once per instruction set.
#if defined(MP_CPU_HISTOGRAM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_HISTOGRAM_INL
#undef MP_CPU_HISTOGRAM_INL
#else
#define MP_CPU_HISTOGRAM_INL
#endif

#include "kernels/cpu/formats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

inline constexpr unsigned kTopBin = 254;

// Bin of a magnitude above 0: the exponent field that it has in fp32, 0 below and 254 above its range.
inline unsigned bin_of(double magnitude) {
    const auto field = static_cast<int>(__builtin_bit_cast(std::uint64_t, magnitude) >> 52) - 1023 + 127;
    return field < 0 ? 0u : field > static_cast<int>(kTopBin) ? kTopBin : static_cast<unsigned>(field);
}

// The bins of a group as bytes; a zero gets bin 0.
template <class F>
HWY_INLINE void bins_of_group(const typename F::Raw* p, std::uint8_t* out) {
    if constexpr (F::kDType == DType::fp64) {
        for (std::size_t i = 0; i < kGroup; ++i)
            out[i] = static_cast<std::uint8_t>(bin_of(__builtin_bit_cast(double, p[i] & F::kMagnitude)));
    } else if constexpr (F::kDType == DType::bf16) {
        const hn::CappedTag<std::uint16_t, kGroup> d;
        const hn::Rebind<std::uint8_t, decltype(d)> d8;
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(d)) {
            const auto field = hn::ShiftRight<8>(hn::ShiftLeft<1>(hn::LoadU(d, p + i)));
            hn::StoreU(hn::DemoteTo(d8, hn::BitCast(hn::RebindToSigned<decltype(d)>(), field)), d8, out + i);
        }
    } else {
        const hn::ScalableTag<float> d;
        const hn::RebindToUnsigned<decltype(d)> d32;
        const hn::Rebind<std::uint8_t, decltype(d)> d8;
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(d)) {
            const auto field = hn::ShiftRight<24>(hn::ShiftLeft<1>(hn::BitCast(d32, F::load32(d, p + i))));
            hn::StoreU(hn::DemoteTo(d8, hn::BitCast(hn::RebindToSigned<decltype(d)>(), field)), d8, out + i);
        }
    }
}

// How many bytes are `first`, `first` + 1, ... `Count` of them; n is a multiple of a vector and at most kBlock.
template <std::size_t Count>
HWY_INLINE void count_bytes(const std::uint8_t* bytes, std::size_t n, unsigned first, std::uint64_t* bins) {
    const hn::ScalableTag<std::uint8_t> d;
    std::size_t counts[Count] = {};
    for (std::size_t i = 0; i < n; i += hn::MaxLanes(d)) {
        const auto v = hn::Load(d, bytes + i);
        for (std::size_t k = 0; k < Count; ++k)
            counts[k] += hn::CountTrue(d, hn::Eq(v, hn::Set(d, static_cast<std::uint8_t>(first + k))));
    }
    for (std::size_t k = 0; k < Count; ++k) bins[first + k] += counts[k];
}

// One comparison per bin and vector is cheaper than scattered counters until the block spans this many bins.
inline constexpr unsigned kComparedBins = 64;

template <class F>
void histogram_of_block(const typename F::Raw* p, std::size_t n, double amin, double amax, std::uint64_t* bins) {
    if (amax == 0) return;
    alignas(64) std::uint8_t bytes[kBlock + 64];
    std::size_t i = 0;
    for (; i + kGroup <= n; i += kGroup) bins_of_group<F>(p + i, bytes + i);
    if (i < n) {
        bins_of_group<F>(Tail<F>(p + i, n - i).values, bytes + i);
        i += kGroup;
    }
    if (i % 64 != 0) std::memset(bytes + i, 0, 32);
    const std::size_t padded = (i + 63) / 64 * 64;
    const unsigned low = bin_of(amin), high = bin_of(amax);
    std::uint64_t counts[256] = {};
    if (high - low >= kComparedBins) {
        for (std::size_t k = 0; k < padded; ++k) ++counts[bytes[k]];
    } else {
        unsigned bin = low;
        for (; bin + 3 <= high; bin += 4) count_bytes<4>(bytes, padded, bin, counts);
        for (; bin <= high; ++bin) count_bytes<1>(bytes, padded, bin, counts);
    }
    if (low == 0) {  // zeros and padding are in bin 0 too
        std::uint64_t zeros = padded - n;
        for (std::size_t k = 0; k < n; ++k) zeros += (p[k] & F::kMagnitude) == 0;
        counts[0] -= zeros;
    }
    for (unsigned bin = low; bin <= high; ++bin) bins[bin] += counts[bin];
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
