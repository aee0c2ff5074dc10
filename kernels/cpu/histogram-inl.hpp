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
    V16 highest;  // of the values of bin `top`

    HWY_INLINE explicit Counters(unsigned top)
        : highest(hn::Set(D16(), static_cast<std::uint16_t>(top << 7 | 0x7F))) {
        for (V16& plane : planes) plane = hn::Zero(D16());
    }

    // 1 << (top - bin); nothing outside of the window.
    HWY_INLINE V16 bit_of(const std::uint16_t* p) const {
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

    // Adds 2^Depth vectors to the first planes; returns the carry for plane `Depth`.
    template <int Depth>
    HWY_INLINE V16 add_vectors(const std::uint16_t* p) {
        if constexpr (Depth == 0) {
            return bit_of(p);
        } else {
            const V16 a = add_vectors<Depth - 1>(p);
            const V16 b = add_vectors<Depth - 1>(p + (kLanes16 << (Depth - 1)));
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

// counts[k]: values of bin top - k. n is a multiple of kGroup.
inline void count_window(const std::uint16_t* p, std::size_t n, unsigned top, std::uint64_t (&counts)[kWindow]) {
    for (std::size_t i = 0; i < n;) {
        Counters counters(top);
        const std::size_t most = Counters::kCapacity * kLanes16;
        const std::size_t end = n - i < most ? n : i + most;
        for (; i + Counters::kVectors * kLanes16 <= end; i += Counters::kVectors * kLanes16) {
            ask_for_next_block(p + i, Counters::kVectors * kLanes16);
            counters.ripple<Counters::kDepth>(counters.add_vectors<Counters::kDepth>(p + i));
        }
        for (; i < end; i += kLanes16) counters.ripple<0>(counters.bit_of(p + i));
        counters.unload(counts);
    }
}

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

// n values other than zero, of bins `low` to `high`, among `padded` halves. Bin 0 is what is left over: its halves
// look like those of zeros.
inline void count_halves(const std::uint16_t* p, std::size_t padded, std::uint64_t n, unsigned low, unsigned high,
                         std::uint64_t* bins) {
    std::uint64_t left = n;
    for (unsigned top = high; top >= 1 && top >= low && left > 0; top -= kWindow) {
        if (top != high && left * kFewShare <= padded) {
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
    count_halves(from, (n + kGroup - 1) / kGroup * kGroup, n - zeros, bin_of(amin), bin_of(amax), bins);
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
