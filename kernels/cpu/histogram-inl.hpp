// Exact exponent histogram of a block. Included once per instruction set.
#if defined(MP_CPU_HISTOGRAM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_HISTOGRAM_INL
#undef MP_CPU_HISTOGRAM_INL
#else
#define MP_CPU_HISTOGRAM_INL
#endif

#include "kernels/cpu/exponent_counters-inl.hpp"
#include "kernels/cpu/formats-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

inline constexpr unsigned kTopBin = 254;

// Bin of a magnitude above 0: its exponent field in fp32, 0 below the range and 254 above.
inline unsigned bin_of(double magnitude) {
    const auto field = static_cast<int>(__builtin_bit_cast(std::uint64_t, magnitude) >> 52) - 1023 + 127;
    return field < 0 ? 0u : field > static_cast<int>(kTopBin) ? kTopBin : static_cast<unsigned>(field);
}

// Prefetches the next block while the exponents of this one are counted, because counting leaves the memory
// idle.
template <class Raw>
HWY_INLINE void ask_for_next_block(const Raw* p, std::size_t elements) {
    const auto* from = reinterpret_cast<const char*>(p) + kBlock * sizeof(Raw);
    for (std::size_t i = 0; i < elements * sizeof(Raw); i += 64) __builtin_prefetch(from + i, 0, 2);
}

// Stores the upper half of each value's fp32 pattern, which starts with the bin. The order within a group
// is arbitrary. The last group is padded with zeros.
template <class F>
void upper_halves(const typename F::Raw* p, std::size_t n, std::uint16_t* out) {
    const DU d;
    const auto upper = hn::Set(d, 0xFFFF0000u);
    const auto group = [&](const typename F::Raw* from, std::uint16_t* to) HWY_ATTR {
        for (std::size_t part = 0; part < kGroup / 2 / kLanes32; ++part) {
            VF a, b;
            F::load_pair(from, part, a, b);
            const auto both =
                hn::Or(hn::And(hn::BitCast(d, a), upper), hn::ShiftRight<16>(hn::BitCast(d, b)));
            hn::StoreU(hn::BitCast(hn::Repartition<std::uint16_t, DU>(), both),
                       hn::Repartition<std::uint16_t, DU>(), to + part * 2 * kLanes32);
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

// Adds to counts[k] the number of values of bin top - k in `vectors` vectors; vector i holds the values
// from p + i * kLanes16.
template <class Raw, class Bits>
HWY_INLINE void count_bits(const Raw* p, const Bits& bits, std::size_t vectors,
                           std::uint64_t (&counts)[kWindow]) {
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

// Counts the halves of a block in the window that ends with bin `top`. n is a multiple of kGroup.
inline void count_window(const std::uint16_t* p, std::size_t n, unsigned top,
                         std::uint64_t (&counts)[kWindow]) {
    const V16 highest = hn::Set(D16(), static_cast<std::uint16_t>(top << 7 | 0x7F));
    const auto bits = [&](std::size_t i) HWY_ATTR { return Counters::bit_of(highest, p + i * kLanes16); };
    count_bits(p, bits, n / kLanes16, counts);
}

#if HWY_TARGET <= HWY_AVX3
// Formats whose leading 16 bits are those of the same value in fp32.
template <class F>
inline constexpr bool kStartsAsFp32 = F::kDType == DType::bf16 || F::kDType == DType::fp32;

// The i-th vector of upper halves, in arbitrary order.
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

// Window bits for non-zero values in bins top - 31 to top. Five bits of the exponent identify the bin, and
// one permutation of a table gives the bit. Zeros look like bin 0.
class NearBits {
public:
    HWY_INLINE explicit NearBits(unsigned top) : top_(top) {
        alignas(64) std::uint16_t table[32] = {};
        for (unsigned k = 0; k < kWindow && k < top; ++k)
            table[(top - k) % 32] = static_cast<std::uint16_t>(1u << k);
        by_bin_ = hn::Load(D16(), table);
    }
    template <class F>
    HWY_INLINE V16 of(const typename F::Raw* p, std::size_t i) const {
        return V16{_mm512_permutexvar_epi16(hn::ShiftRight<7>(upper_half_vector<F>(p, i)).raw, by_bin_.raw)};
    }
    HWY_INLINE void take_away(std::uint64_t zeros, std::uint64_t (&counts)[kWindow]) const {
        if (top_ % 32 < kWindow && top_ % 32 < top_) counts[top_ % 32] -= zeros;
    }

private:
    unsigned top_;
    V16 by_bin_;
};

template <class F>
void count_near(const typename F::Raw* p, std::size_t n, std::uint64_t zeros, unsigned top,
                std::uint64_t (&counts)[kWindow]) {
    const NearBits near(top);
    const auto bits = [&](std::size_t i) HWY_ATTR { return near.of<F>(p, i); };
    count_bits(p, bits, n / kLanes16, counts);
    near.take_away(zeros, counts);
}
#endif

// Counts the few values of bins 1 to `last`, at most `few`, one at a time; returns their number. n is a
// multiple of kGroup.
template <class F>
std::uint64_t count_few(const typename F::Raw* p, std::size_t n, std::uint64_t few, unsigned last,
                        std::uint64_t* bins) {
    using Raw = typename F::Raw;
    constexpr std::size_t kStretch = 4 * kGroup;
    constexpr int kFieldAt = F::kTable.mantissa_bits;
    const hn::CappedTag<Raw, kGroup> d;
    // Distance to the lowest normal magnitude: zeros and subnormals are farthest.
    const auto some_below = [&](const Raw* from, std::size_t elements) HWY_ATTR {
        auto least = hn::Not(hn::Zero(d));
        for (std::size_t i = 0; i < elements; i += hn::MaxLanes(d)) {
            const auto magnitude = hn::And(hn::LoadU(d, from + i), hn::Set(d, F::kMagnitude));
            least = hn::Min(least, hn::Sub(magnitude, hn::Set(d, F::kMinNormal)));
        }
        return !hn::AllFalse(d, hn::Lt(least, hn::Set(d, static_cast<Raw>(last << kFieldAt))));
    };
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < n && found < few;) {
        if (i % kStretch == 0 && i + kStretch <= n && !some_below(p + i, kStretch)) {
            i += kStretch;
            continue;
        }
        if (some_below(p + i, kGroup))
            for (std::size_t k = i; k < i + kGroup; ++k) {
                const unsigned bin = p[k] >> kFieldAt & 0xFF;
                const bool counts = bin >= 1 && bin <= last;
                bins[bin] += counts;
                found += counts;
            }
        i += kGroup;
    }
    return found;
}

// Another window is not worth its pass when less than this share (1/512) of a block is left.
inline constexpr std::size_t kFewShare = 512;

// Counts n non-zero values in bins `low` to `top` among `padded` halves. Bin 0 gets the remaining count,
// because its halves look like those of zeros. `rest`: the bins above are already counted.
inline void count_halves(const std::uint16_t* p, std::size_t padded, std::uint64_t n, unsigned low,
                         unsigned top, bool rest, std::uint64_t* bins) {
    std::uint64_t left = n;
    for (; top >= 1 && top >= low && left > 0; top -= kWindow, rest = true) {
        if (rest && left * kFewShare <= padded) {
            left -= count_few<Bf16>(p, padded, left, top, bins);
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

// Counts the rest of a block whose bins above `top` are already counted (`rest`), or the whole block.
template <class F>
HWY_NOINLINE void count_rest(const typename F::Raw* p, std::size_t n, std::uint64_t left, unsigned low,
                             unsigned top, bool rest, std::uint64_t* bins) {
    const std::size_t padded = (n + kGroup - 1) / kGroup * kGroup;
    if constexpr (F::kDType == DType::bf16) {
        if (n == padded) return count_halves(p, n, left, low, top, rest, bins);
    }
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kStartsAsFp32<F>)
        if (n == padded && rest && low >= 1 && left * kFewShare <= n) {
            count_few<F>(p, n, left, top, bins);
            return;
        }
#endif
    alignas(64) std::uint16_t halves[kBlock];
    if constexpr (F::kDType == DType::fp64) {
        upper_halves_fp64(p, n, halves);
    } else {
        upper_halves<F>(p, n, halves);
    }
    count_halves(halves, padded, left, low, top, rest, bins);
}

// Adds a window that ends with bin `top`; returns the number of values in it.
inline std::uint64_t add_window(const std::uint64_t (&window)[kWindow], unsigned top, std::uint64_t* bins) {
    std::uint64_t sum = 0;
    for (unsigned k = 0; k < kWindow && k < top; ++k) {
        bins[top - k] += window[k];
        sum += window[k];
    }
    return sum;
}

// `zeros` of the n values are 0.
template <class F>
void histogram_of_block(const typename F::Raw* p, std::size_t n, std::uint64_t zeros, double amin,
                        double amax, std::uint64_t* bins) {
    if (amax == 0) return;
    const unsigned low = bin_of(amin), high = bin_of(amax);
    std::uint64_t left = n - zeros;
    unsigned top = high;
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kStartsAsFp32<F>)
        if (n % kGroup == 0 && low >= 1 && high - low < 2 * kWindow) {
            std::uint64_t window[kWindow] = {};
            count_near<F>(p, n, zeros, high, window);
            left -= add_window(window, high, bins);
            if (left == 0) return;
            top = high - kWindow;
        }
#endif
    count_rest<F>(p, n, left, low, top, top != high, bins);
}

// Counts exponents during the statistics pass. This version counts nothing.
struct NoCount {
    HWY_INLINE explicit NoCount(const BlockHistogram*) {}
    template <class Raw>
    HWY_INLINE void add(const Raw*, std::size_t) {}
    template <class Raw>
    HWY_INLINE bool put(const Raw*, std::size_t, std::uint64_t, double, double, std::uint64_t*) {
        return false;
    }
};

#if HWY_TARGET <= HWY_AVX3
// Counts the window that ends with bin `top`, guessed from the previous block, so that memory access and
// arithmetic overlap.
template <class F>
class GuessedCount {
public:
    using Raw = typename F::Raw;
    static_assert(kBlock / kLanes16 < 256 && kLanes16 == kGroup);
    HWY_INLINE explicit GuessedCount(const BlockHistogram* histogram) : top_(histogram->top), near_(top_) {}

    HWY_INLINE void add(const Raw* p, std::size_t groups) {
        const auto bits = [&](std::size_t i) HWY_ATTR { return near_.template of<F>(p, i); };
        if (groups == 12) {
            const V16 eights = counters_.template add_vectors<3>(bits, 0);
            const V16 fours = counters_.template add_vectors<2>(bits, 8);
            const V16 carry = hn::And(counters_.planes[2], fours);
            counters_.planes[2] = hn::Xor(counters_.planes[2], fours);
            counters_.template ripple<4>(Counters::add(counters_.planes[3], eights, carry));
            return;
        }
        std::size_t i = 0;
        for (; i + 4 <= groups; i += 4)
            counters_.template ripple<2>(counters_.template add_vectors<2>(bits, i));
        for (; i < groups; ++i) counters_.template ripple<0>(bits(i));
    }

    // Adds the block to `bins`; returns false when the guess was wrong.
    HWY_INLINE bool put(const Raw* p, std::size_t n, std::uint64_t zeros, double amin, double amax,
                        std::uint64_t* bins) {
        const unsigned low = bin_of(amin), high = bin_of(amax);
        if (low == 0 || high > top_ || top_ - low >= 2 * kWindow) return false;
        std::uint64_t window[kWindow] = {};
        counters_.unload(window);
        near_.take_away(zeros, window);
        if (top_ >= kWindow && top_ - low < kWindow) {
            for (unsigned k = 0; k < kWindow; ++k) bins[top_ - k] += window[k];
            return true;
        }
        const std::uint64_t left = n - zeros - add_window(window, top_, bins);
        if (left > 0) count_rest<F>(p, n, left, low, top_ - kWindow, true, bins);
        return true;
    }

private:
    unsigned top_;
    NearBits near_;
    Counters counters_;
};
#endif

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
