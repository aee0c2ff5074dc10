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

// Asks for the block after this one while its exponents are counted: that is arithmetic, and memory would be idle.
template <class Raw>
HWY_INLINE void ask_for_next_block(const Raw* p, std::size_t elements) {
    const auto* from = reinterpret_cast<const char*>(p) + kBlock * sizeof(Raw);
    for (std::size_t i = 0; i < elements * sizeof(Raw); i += 64) __builtin_prefetch(from + i, 0, 2);
}

// Every value as the upper half of its fp32 pattern, which starts with the bin; in any order within a group. The
// last group is filled with zeros.
template <class F>
void upper_halves(const typename F::Raw* p, std::size_t n, std::uint16_t* out) {
    const DU d;
    const auto upper = hn::Set(d, 0xFFFF0000u);
    const auto group = [&](const typename F::Raw* from, std::uint16_t* to) HWY_ATTR {
        for (std::size_t part = 0; part < kGroup / 2 / kLanes32; ++part) {
            VF a, b;
            F::load_pair(from, part, a, b);
            const auto both = hn::Or(hn::And(hn::BitCast(d, a), upper), hn::ShiftRight<16>(hn::BitCast(d, b)));
            hn::StoreU(hn::BitCast(hn::Repartition<std::uint16_t, DU>(), both), hn::Repartition<std::uint16_t, DU>(),
                       to + part * 2 * kLanes32);
        }
    };
    std::size_t i = 0;
    for (; i + kGroup <= n; i += kGroup) {
        ask_for_next_block(p + i, kGroup);
        group(p + i, out + i);
    }
    if (i < n) group(Tail<F>(p + i, n - i).values, out + i);
}

inline void upper_halves_fp64(const std::uint64_t* p, std::size_t n, std::uint16_t* out) {
    std::memset(out, 0, (n + kGroup - 1) / kGroup * kGroup * sizeof(*out));
    for (std::size_t i = 0; i < n; ++i)
        out[i] = static_cast<std::uint16_t>(bin_of(__builtin_bit_cast(double, p[i] & Fp64::kMagnitude)) << 7);
}

using D16 = hn::ScalableTag<std::uint16_t>;
using D8 = hn::Repartition<std::uint8_t, D16>;
using V16 = hn::Vec<D16>;
inline constexpr std::size_t kLanes16 = hn::MaxLanes(D16());
inline constexpr unsigned kWindow = 16;  // bins counted at once: one bit of a lane each

// Counts the values of 16 neighbouring bins. Each lane holds 16 counters of 8 bits, bit b of plane k being bit k of
// the counter of bin top - b; a value is added as a bit in the place of its bin, by carry-save adders.
struct Counters {
    static constexpr int kPlanes = 8;
    static constexpr int kDepth = 4;                             // 2^kDepth vectors are added at once
    static constexpr std::size_t kVectors = std::size_t{1} << kDepth;
    static constexpr std::size_t kCapacity = 256 - kVectors;     // vectors until a counter may be full

    V16 planes[kPlanes];

    HWY_INLINE Counters() {
        for (V16& plane : planes) plane = hn::Zero(D16());
    }

    // 1 << (top - bin) with the highest value of bin `top`; nothing outside of the window.
    static HWY_INLINE V16 bit_of(V16 highest, const std::uint16_t* p) {
        const D16 d;
        const V16 magnitude = hn::And(hn::LoadU(d, p), hn::Set(d, 0x7FFF));
        const V16 below = hn::ShiftRight<7>(hn::Sub(highest, magnitude));
#if HWY_TARGET <= HWY_AVX3
        return hn::Shl(hn::Set(d, 1), below);  // what is shifted by 16 and more is 0
#else
        // A table of the bits of a byte. Saturated addition leaves 0 to 7 in the lower four bits of the one byte that
        // has the bit, and 8 to 15 or a set sign in all others: 0.
        alignas(16) static constexpr std::uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128};
        const D8 d8;
        const V16 byte = hn::Min(below, hn::Set(d, 0xFF));
        const auto twice = hn::BitCast(d8, hn::Or(byte, hn::ShiftLeft<8>(byte)));
        const auto index = hn::SaturatedAdd(twice, hn::BitCast(d8, hn::Set(d, 0x6870)));
        return hn::BitCast(d, hn::TableLookupBytesOr0(hn::LoadDup128(d8, kBits), hn::And(index, hn::Set(d8, 0x8F))));
#endif
    }

    // Adds a and b to a plane; returns the carry.
    static HWY_INLINE V16 add(V16& plane, V16 a, V16 b) {
#if HWY_TARGET <= HWY_AVX3
        constexpr int kMajority = 0xE8, kParity = 0x96;
        const V16 most{_mm512_ternarylogic_epi64(a.raw, b.raw, plane.raw, kMajority)};
        plane = V16{_mm512_ternarylogic_epi64(a.raw, b.raw, plane.raw, kParity)};
        return most;
#else
        const V16 either = hn::Xor(a, b);
        const V16 carry = hn::Or(hn::And(a, b), hn::And(either, plane));
        plane = hn::Xor(plane, either);
        return carry;
#endif
    }

    // Adds 2^Depth vectors of bits, those of `bits(i)` and following, to the first planes; returns the carry for plane
    // `Depth`.
    template <int Depth, class Bits>
    HWY_INLINE V16 add_vectors(const Bits& bits, std::size_t i) {
        if constexpr (Depth == 0) {
            return bits(i);
        } else {
            const V16 a = add_vectors<Depth - 1>(bits, i);
            const V16 b = add_vectors<Depth - 1>(bits, i + (std::size_t{1} << (Depth - 1)));
            return add(planes[Depth - 1], a, b);
        }
    }

    template <int First>
    HWY_INLINE void ripple(V16 carry) {
        for (int k = First; k < kPlanes; ++k) {
            const V16 next = hn::And(planes[k], carry);
            planes[k] = hn::Xor(planes[k], carry);
            carry = next;
        }
    }

    // Columns of bits become rows: afterwards the bytes of planes[b] count bin top - b (even) and top - b - 8 (odd).
    template <int Distance>
    HWY_INLINE void exchange(std::uint16_t columns) {
        const V16 mask = hn::Set(D16(), columns);
        for (int k = 0; k < kPlanes; ++k) {
            if (k & Distance) continue;
            V16 &a = planes[k], &b = planes[k + Distance];
            const V16 differ = hn::And(hn::Xor(hn::ShiftRight<Distance>(a), b), mask);
            b = hn::Xor(b, differ);
            a = hn::Xor(a, hn::ShiftLeft<Distance>(differ));
        }
    }

    // Sums of the even bytes of four planes, 16 bits each.
    static HWY_INLINE std::uint64_t sums_of_four(const V16* of, bool odd) {
        const hn::Repartition<std::uint64_t, D16> d64;
        auto packed = hn::Zero(d64);
        for (int k = 3; k >= 0; --k) {
            const V16 bytes = odd ? hn::ShiftRight<8>(of[k]) : hn::And(of[k], hn::Set(D16(), 0xFF));
            packed = hn::Add(hn::ShiftLeft<16>(packed), hn::SumsOf8(hn::BitCast(D8(), bytes)));
        }
        alignas(64) std::uint64_t lanes[hn::MaxLanes(d64)];
        hn::Store(packed, d64, lanes);
        std::uint64_t sum = 0;
        for (const std::uint64_t lane : lanes) sum += lane;
        return sum;
    }

    HWY_INLINE void unload(std::uint64_t (&counts)[kWindow]) {
        exchange<4>(0x0F0F);
        exchange<2>(0x3333);
        exchange<1>(0x5555);
        for (unsigned first = 0; first < kWindow; first += 4) {
            const std::uint64_t four = sums_of_four(planes + first % 8, first >= 8);
            for (unsigned k = 0; k < 4; ++k) counts[first + k] += four >> (16 * k) & 0xFFFF;
        }
    }
};

// counts[k]: values of bin top - k in `vectors` vectors; vector i holds the values from p + i * kLanes16.
template <class Raw, class Bits>
HWY_INLINE void count_bits(const Raw* p, const Bits& bits, std::size_t vectors, std::uint64_t (&counts)[kWindow]) {
    for (std::size_t i = 0; i < vectors;) {
        Counters counters;
        const std::size_t end = vectors - i < Counters::kCapacity ? vectors : i + Counters::kCapacity;
        for (; i + Counters::kVectors <= end; i += Counters::kVectors) {
            ask_for_next_block(p + i * kLanes16, Counters::kVectors * kLanes16);
            counters.ripple<Counters::kDepth>(counters.add_vectors<Counters::kDepth>(bits, i));
        }
        for (; i < end; ++i) counters.ripple<0>(bits(i));
        counters.unload(counts);
    }
}

// The halves of a block in the window that ends with bin `top`. n is a multiple of kGroup.
inline void count_window(const std::uint16_t* p, std::size_t n, unsigned top, std::uint64_t (&counts)[kWindow]) {
    const V16 highest = hn::Set(D16(), static_cast<std::uint16_t>(top << 7 | 0x7F));
    const auto bits = [&](std::size_t i) HWY_ATTR { return Counters::bit_of(highest, p + i * kLanes16); };
    count_bits(p, bits, n / kLanes16, counts);
}

#if HWY_TARGET <= HWY_AVX3
// Formats whose upper half is the upper half of the same value in fp32.
template <class F>
inline constexpr bool kStartsAsFp32 = F::kDType == DType::bf16 || F::kDType == DType::fp32;

// The i-th vector of upper halves, in any order.
template <class F>
HWY_INLINE V16 upper_half_vector(const typename F::Raw* p, std::size_t i) {
    const D16 d;
    if constexpr (F::kDType == DType::bf16) {
        return hn::LoadU(d, p + i * kLanes16);
    } else {
        const DU d32;
        const auto a = hn::LoadU(d32, p + i * kLanes16), b = hn::LoadU(d32, p + i * kLanes16 + kLanes16 / 2);
        constexpr __mmask32 kUpper = 0xAAAAAAAAu;
        return V16{_mm512_mask_blend_epi16(kUpper, hn::ShiftRight<16>(b).raw, a.raw)};
    }
}

// As count_window for a block whose values other than zero lie in bins top - 31 to top: five bits of the exponent tell
// them apart, and one permutation of a table gives the bit. Zeros look like bin 0.
template <class F>
void count_near(const typename F::Raw* p, std::size_t n, std::uint64_t zeros, unsigned top,
                std::uint64_t (&counts)[kWindow]) {
    alignas(64) std::uint16_t table[32] = {};
    for (unsigned k = 0; k < kWindow && k < top; ++k)
        table[(top - k) % 32] = static_cast<std::uint16_t>(1u << k);
    const V16 by_bin = hn::Load(D16(), table);
    const auto bits = [&](std::size_t i) HWY_ATTR {
        return V16{_mm512_permutexvar_epi16(hn::ShiftRight<7>(upper_half_vector<F>(p, i)).raw, by_bin.raw)};
    };
    count_bits(p, bits, n / kLanes16, counts);
    if (top % 32 < kWindow && top % 32 < top) counts[top % 32] -= zeros;
}
#endif

// Smallest distance of n values to the lowest normal magnitude; zeros and subnormals are the furthest away.
HWY_INLINE V16 least_above_normal(const std::uint16_t* p, std::size_t n) {
    const D16 d;
    V16 least = hn::Set(d, 0xFFFF);
    for (std::size_t i = 0; i < n; i += kLanes16) {
        const V16 magnitude = hn::And(hn::LoadU(d, p + i), hn::Set(d, 0x7FFF));
        least = hn::Min(least, hn::Sub(magnitude, hn::Set(d, 0x80)));
    }
    return least;
}

// The few values of bins 1 to `last`, at most `few`, one at a time; returns how many. n is a multiple of kGroup.
inline std::uint64_t count_few(const std::uint16_t* p, std::size_t n, std::uint64_t few, unsigned last,
                               std::uint64_t* bins) {
    constexpr std::size_t kStretch = 4 * kGroup;
    const D16 d;
    const V16 beyond = hn::Set(d, static_cast<std::uint16_t>(last << 7));
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < n && found < few;) {
        if (i % kStretch == 0 && i + kStretch <= n &&
            hn::AllFalse(d, hn::Lt(least_above_normal(p + i, kStretch), beyond))) {
            i += kStretch;
            continue;
        }
        if (!hn::AllFalse(d, hn::Lt(least_above_normal(p + i, kGroup), beyond)))
            for (std::size_t k = i; k < i + kGroup; ++k) {
                const unsigned bin = p[k] >> 7 & 0xFF;
                const bool counts = bin >= 1 && bin <= last;
                bins[bin] += counts;
                found += counts;
            }
        i += kGroup;
    }
    return found;
}

// With fewer left than this share of a block another window is not worth its pass.
inline constexpr std::size_t kFewShare = 512;

// n values other than zero, of bins `low` to `top`, among `padded` halves. Bin 0 is what is left over: its halves look
// like those of zeros. `rest`: the bins above have been counted already.
inline void count_halves(const std::uint16_t* p, std::size_t padded, std::uint64_t n, unsigned low, unsigned top,
                         bool rest, std::uint64_t* bins) {
    std::uint64_t left = n;
    for (; top >= 1 && top >= low && left > 0; top -= kWindow, rest = true) {
        if (rest && left * kFewShare <= padded) {
            left -= count_few(p, padded, left, top, bins);
            break;
        }
        std::uint64_t window[kWindow] = {};
        count_window(p, padded, top, window);
        for (unsigned k = 0; k < kWindow && k < top; ++k) {
            bins[top - k] += window[k];
            left -= window[k];
        }
        if (top < kWindow) break;
    }
    bins[0] += left;
}

// `zeros` of the n values are 0.
template <class F>
void histogram_of_block(const typename F::Raw* p, std::size_t n, std::uint64_t zeros, double amin, double amax,
                        std::uint64_t* bins) {
    if (amax == 0) return;
    const unsigned low = bin_of(amin), high = bin_of(amax);
    std::uint64_t left = n - zeros;
    unsigned top = high;
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kStartsAsFp32<F>)
        if (n % kGroup == 0 && low >= 1 && high - low < 2 * kWindow) {
            std::uint64_t window[kWindow] = {};
            count_near<F>(p, n, zeros, high, window);
            for (unsigned k = 0; k < kWindow && k < high; ++k) {
                bins[high - k] += window[k];
                left -= window[k];
            }
            if (left == 0) return;
            top = high - kWindow;
        }
#endif
    alignas(64) std::uint16_t halves[kBlock];
    const std::uint16_t* from = halves;
    if constexpr (F::kDType == DType::fp64) {
        upper_halves_fp64(p, n, halves);
    } else if constexpr (F::kDType == DType::bf16) {
        if (n % kGroup == 0)
            from = p;
        else
            upper_halves<F>(p, n, halves);
    } else {
        upper_halves<F>(p, n, halves);
    }
    count_halves(from, (n + kGroup - 1) / kGroup * kGroup, left, low, top, top != high, bins);
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
