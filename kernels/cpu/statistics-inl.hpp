// One-sided statistics of a block. Included once per instruction set.
#if defined(MP_CPU_STATISTICS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MP_CPU_STATISTICS_INL
#undef MP_CPU_STATISTICS_INL
#else
#define MP_CPU_STATISTICS_INL
#endif

#include "kernels/cpu/formats-inl.hpp"
#include "kernels/cpu/histogram-inl.hpp"
#include "kernels/cpu/short_sums-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mp::cpu::HWY_NAMESPACE {

// Distance of prefetches ahead of the loads. The hardware's own prefetch stops at each page.
inline constexpr std::size_t kAheadBytes = 4096;

template <class Raw>
HWY_INLINE void ask_ahead(const Raw* p, std::size_t elements) {
    const auto* from = reinterpret_cast<const char*>(p) + kAheadBytes;
    for (std::size_t i = 0; i < elements * sizeof(Raw); i += 64) __builtin_prefetch(from + i);
}

template <class F>
struct OneSided {
    using Raw = typename F::Raw;
    static constexpr std::size_t kVectors = 16 / kLanes64;

    Raw max = 0;           // magnitude pattern
    Raw min_less_one = 0;  // of the values above 0; all ones: there is none
    std::uint64_t zeros = 0;
    double sum = 0, squares = 0;
    bool quick = false;  // the sums started in fp32

    using DRaw = hn::CappedTag<Raw, kGroup>;
    struct State {
        hn::Vec<DRaw> max, min_less_one;
        std::size_t zeros;
        V64 sum[kVectors], squares[kVectors];
        // Written by hand, because a generated constructor would not be compiled for this instruction set.
        HWY_INLINE State() : max(hn::Zero(DRaw())), min_less_one(hn::Not(hn::Zero(DRaw()))), zeros(0) {
            for (std::size_t i = 0; i < kVectors; ++i) sum[i] = squares[i] = hn::Zero(D64());
        }
    };

    static HWY_INLINE void patterns(const Raw* p, State& s) {
        const DRaw d;
        const auto mask = hn::Set(d, F::kMagnitude), one = hn::Set(d, Raw{1});
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(d)) {
            const auto magnitude = hn::And(hn::LoadU(d, p + i), mask);
            s.max = hn::Max(s.max, magnitude);
            s.min_less_one = hn::Min(s.min_less_one, hn::Sub(magnitude, one));  // 0 wraps to the largest
                                                                                // pattern
            s.zeros += hn::CountTrue(d, hn::Eq(magnitude, hn::Zero(d)));
        }
    }

    static HWY_INLINE void values(const Raw* p, State& s) {
        for (std::size_t i = 0; i < kGroup / kLanes64; ++i) {
            const V64 x = F::load(p + i * kLanes64);
            const std::size_t lane = i % kVectors;
            s.sum[lane] = hn::Add(s.sum[lane], x);
            if constexpr (F::kExactSquares)
                s.squares[lane] = hn::MulAdd(x, x, s.squares[lane]);
            else
                s.squares[lane] = hn::Add(s.squares[lane], hn::Mul(x, x));
        }
    }

    // Finds the zeros of a block and its smallest magnitude above 0.
    HWY_NOINLINE void find_zeros(const Raw* p, std::size_t n) {
        State s;
        std::size_t i = 0;
        for (; i + kGroup <= n; i += kGroup) patterns(p + i, s);
        if (i < n) {
            patterns(Tail<F>(p + i, n - i).values, s);
            s.zeros -= kGroup - (n - i);
        }
        min_less_one = static_cast<Raw>(~lane_max(DRaw(), hn::Not(s.min_less_one)));
        zeros = s.zeros;
    }

    HWY_NOINLINE void run(const Raw* p, std::size_t n) {
        State s;
        std::size_t i = 0;
        for (; i + kGroup <= n; i += kGroup) {
            ask_ahead(p + i, kGroup);
            patterns(p + i, s);
            values(p + i, s);
        }
        if (i < n) {
            const Tail<F> tail(p + i, n - i);
            patterns(tail.values, s);
            values(tail.values, s);
            s.zeros -= kGroup - (n - i);
        }
        const DRaw d;
        max = lane_max(d, s.max);
        min_less_one = static_cast<Raw>(~lane_max(d, hn::Not(s.min_less_one)));
        zeros = s.zeros;
        sum = sum_of(s.sum);
        squares = sum_of(s.squares);
    }
};

// The results of the pass with fp32 lanes. Zeros and the smallest magnitude above 0 need a second pass over
// the block in cache, which runs only when there is a zero.
template <class F>
struct QuickOneSided {
    using Raw = typename F::Raw;
    using DRaw = hn::CappedTag<Raw, kGroup>;
    struct State {
        hn::Vec<DRaw> max, min;
        // Written by hand, because a generated constructor would not be compiled for this instruction set.
        HWY_INLINE State() : max(hn::Zero(DRaw())), min(hn::Not(hn::Zero(DRaw()))) {}
    };
    struct Short {
        ShortSum sum[2], squares[2];
        HWY_INLINE Short() {}
    };

    static HWY_INLINE void patterns(const Raw* p, State& s) {
        const DRaw d;
        const auto mask = hn::Set(d, F::kMagnitude);
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(d)) {
            const auto magnitude = hn::And(hn::LoadU(d, p + i), mask);
            s.max = hn::Max(s.max, magnitude);
            s.min = hn::Min(s.min, magnitude);
        }
    }

    // For the first elements of a group that is padded with zeros.
    static HWY_INLINE void patterns_of(const Raw* p, std::size_t elements, State& s) {
        const DRaw d;
        const auto mask = hn::Set(d, F::kMagnitude);
        for (std::size_t i = 0; i < elements; i += hn::MaxLanes(d)) {
            const auto magnitude = hn::And(hn::LoadU(d, p + i), mask);
            const std::size_t left = elements - i < hn::MaxLanes(d) ? elements - i : hn::MaxLanes(d);
            s.max = hn::Max(s.max, magnitude);
            s.min = hn::Min(s.min, hn::IfThenElse(hn::FirstN(d, left), magnitude, s.min));
        }
    }

    static HWY_INLINE void values(const Raw* p, Short& sums) {
        for (std::size_t part = 0; part < kParts; ++part) {
            VF x[2];
            F::load_pair(p, part, x[0], x[1]);
            for (std::size_t k = 0; k < 2; ++k) {
                sums.sum[k].add(part, x[k]);
                sums.squares[k].add_product(part, x[k], x[k]);
            }
        }
    }

    static HWY_INLINE void fold(Short& from, LongSum& sum, LongSum& squares) {
        for (std::size_t part = 0; part < kParts; ++part) {
            from.sum[0].add(part, from.sum[1].lanes[part]);
            from.squares[0].add(part, from.squares[1].lanes[part]);
        }
        sum.take(from.sum[0]);
        squares.take(from.squares[0]);
    }

    template <class Count>
    static HWY_INLINE void run(const Raw* p, std::size_t n, OneSided<F>& into, Count& count) {
        State s;
        LongSum sum, squares;
        std::size_t i = 0;
        while (i + kGroup <= n) {
            Short sums;
            const std::size_t start = i;
            const std::size_t end = n - i < kValuesPerLane * kGroup ? n : i + kValuesPerLane * kGroup;
            for (; i + kGroup <= end; i += kGroup) {
                ask_ahead(p + i, kGroup);
                patterns(p + i, s);
                values(p + i, sums);
            }
            fold(sums, sum, squares);
            count.add(p + start, (i - start) / kGroup);
        }
        if (i < n) {
            Short sums;
            const Tail<F> tail(p + i, n - i);
            patterns_of(tail.values, n - i, s);
            values(tail.values, sums);
            fold(sums, sum, squares);
        }
        const DRaw d;
        into.max = lane_max(d, s.max);
        into.min_less_one = static_cast<Raw>(~lane_max(d, hn::Not(s.min)) - 1);
        if (into.min_less_one == static_cast<Raw>(~Raw{0})) into.find_zeros(p, n);
        into.sum = sum.total();
        into.squares = squares.total();
        into.quick = true;
    }
};

// Whether fp32 sums are valid. No test is needed for a format whose squares are far from the limits of
// fp32.
template <class F>
bool runs_quick(typename F::Raw largest) {
    if constexpr (F::kTable.exponent_bits == 8) {
        return is_quick(static_cast<std::uint32_t>(largest) << (F::kDType == DType::bf16 ? 16 : 0));
    } else {
        return F::kDType != DType::fp64;
    }
}

template <class F, class Count>
HWY_INLINE void measure_one_sided(const typename F::Raw* p, std::size_t n, OneSided<F>& into, Count& count) {
    if constexpr (F::kDType != DType::fp64) {
        QuickOneSided<F>::run(p, n, into, count);
        if (into.max >= F::kBeyondFinite || runs_quick<F>(into.max)) return;
    }
    into = OneSided<F>();
    into.run(p, n);
}

// Whether any element is NaN or infinite.
template <class F>
bool nonfinite_in_block(const void* data, std::size_t n) {
    const auto* p = static_cast<const typename F::Raw*>(data);
    const hn::CappedTag<typename F::Raw, kGroup> d;
    const auto mask = hn::Set(d, F::kMagnitude);
    auto max = hn::Zero(d);
    const auto add = [&](const typename F::Raw* from) HWY_ATTR {
        for (std::size_t i = 0; i < kGroup; i += hn::MaxLanes(d))
            max = hn::Max(max, hn::And(hn::LoadU(d, from + i), mask));
    };
    std::size_t i = 0;
    for (; i + kGroup <= n; i += kGroup) {
        ask_ahead(p + i, kGroup);
        add(p + i);
    }
    if (i < n) add(Tail<F>(p + i, n - i).values);
    return !hn::AllFalse(d, hn::Lt(hn::Set(d, static_cast<typename F::Raw>(F::kBeyondFinite - 1)), max));
}

template <class F>
std::uint64_t count_below_normal(const typename F::Raw* p, std::size_t n) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += (p[i] & F::kMagnitude) < F::kMinNormal;
    return count;
}

template <class F>
std::uint64_t count_saturated(const typename F::Raw* p, std::size_t n) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += (p[i] & F::kMagnitude) == F::kBeyondFinite - 1;
    return count;
}

// Computes the mean and the sum of (x - mean)^2 in a second pass over the block, from the distances to a
// first guess of the mean. `none` of the values are zeros that replace non-finite values.
template <class F>
HWY_NOINLINE void measure_spread(const typename F::Raw* p, std::size_t n, std::size_t none,
                                 TensorStats& block) {
    const double guess = block.mean;
    const V64 center = hn::Set(D64(), guess);
    LongSum first, second;
    std::size_t i = 0;
    for (; i + kGroup <= n; i += kGroup)
        for (std::size_t k = 0; k < kGroup / kLanes64; ++k) {
            const V64 away = hn::Sub(F::load(p + i + k * kLanes64), center);
            V64& one = first.lanes[k % kWideParts];
            V64& two = second.lanes[k % kWideParts];
            one = hn::Add(one, away);
            two = hn::Add(two, hn::Mul(away, away));
        }
    const auto count = static_cast<double>(n - none);
    double distances = first.total() + static_cast<double>(none) * guess;
    double squares = second.total() - static_cast<double>(none) * guess * guess;
    double rest[kGroup];
    widen_block<F>(p + i, n - i, rest);
    for (std::size_t j = 0; j < n - i; ++j) {
        distances += rest[j] - guess;
        squares += (rest[j] - guess) * (rest[j] - guess);
    }
    block.mean = guess + distances / count;
    block.m2 = squares - distances * (distances / count);
    if (block.m2 < 0) block.m2 = 0;
}

// Counts non-finite values and replaces them by 0; returns their number.
template <class F>
std::size_t set_apart(const typename F::Raw* p, std::size_t n, typename F::Raw* out, TensorStats& counted) {
    std::size_t replaced = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const auto magnitude = static_cast<typename F::Raw>(p[i] & F::kMagnitude);
        out[i] = magnitude < F::kBeyondFinite ? p[i] : typename F::Raw{0};
        if (magnitude < F::kBeyondFinite) continue;
        ++replaced;
        const bool infinite = F::kTable.has_infinity() && magnitude == F::kBeyondFinite;
        counted.nan += !infinite;
        counted.pos_inf += infinite && p[i] == magnitude;
        counted.neg_inf += infinite && p[i] != magnitude;
    }
    return replaced;
}

// Below this share of the sum of squares, the difference of two sums has lost half of its 53 bits (4 of the
// 20 bits of short sums), and a second pass is needed.
inline constexpr double kCancelled = 0x1p-26, kCancelledShort = 0x1p-4;

template <class F>
void finish_block(const typename F::Raw* p, std::size_t n, std::size_t replaced, const OneSided<F>& one,
                  TensorStats& block) {
    using Raw = typename F::Raw;
    const auto min = static_cast<Raw>(one.min_less_one + 1);  // all ones wraps to 0: there is none
    block.count = n;
    block.zero = one.zeros - replaced;
    if (min != 0 && min < F::kMinNormal) block.subnormal = count_below_normal<F>(p, n) - one.zeros;
    if (one.max == F::kBeyondFinite - 1) block.saturated = count_saturated<F>(p, n);
    block.amax = magnitude_value<F>(one.max);
    block.amin = magnitude_value<F>(min);
    block.sum = one.sum;
    block.sum_squares = one.squares;
    if (n == replaced) return;
    const auto finite = static_cast<double>(n - replaced);
    block.mean = one.sum / finite;
    if (n - replaced == 1) return;
    block.m2 = one.squares - one.sum * block.mean;
    if (!(block.m2 > one.squares * (one.quick ? kCancelledShort : kCancelled)) && one.squares > 0)
        measure_spread<F>(p, n, replaced, block);
}

template <class F>
HWY_NOINLINE void statistics_with_nonfinite(const typename F::Raw* p, std::size_t n, TensorStats& into,
                                            BlockHistogram* histogram) {
    typename F::Raw finite[kBlock];
    TensorStats block;
    NoCount none(histogram);
    const std::size_t replaced = set_apart<F>(p, n, finite, block);
    OneSided<F> one;
    measure_one_sided<F>(finite, n, one, none);
    finish_block<F>(finite, n, replaced, one, block);
    into.merge(block);
    if (histogram) histogram_of_block<F>(finite, n, one.zeros, block.amin, block.amax, histogram->bins);
}

// A window extends down from the highest bin. The largest value varies from block to block, so the window
// may start one or two bins higher.
inline void expect_like(double amax, BlockHistogram& histogram) {
    const unsigned high = bin_of(amax);
    if (histogram.top < high || histogram.top > high + 2) histogram.top = high;
}

template <class F, class Count>
HWY_NOINLINE void measure_block(const typename F::Raw* p, std::size_t n, TensorStats& into,
                                BlockHistogram* histogram) {
    Count count(histogram);
    OneSided<F> one;
    measure_one_sided<F>(p, n, one, count);
    if (one.max >= F::kBeyondFinite) return statistics_with_nonfinite<F>(p, n, into, histogram);
    TensorStats block;
    finish_block<F>(p, n, 0, one, block);
    into.merge(block);
    if (!histogram) return;
    if (!count.put(p, n, one.zeros, block.amin, block.amax, histogram->bins))
        histogram_of_block<F>(p, n, one.zeros, block.amin, block.amax, histogram->bins);
    expect_like(block.amax, *histogram);
}

template <class F>
void statistics_of_block(const void* data, std::size_t n, TensorStats& into, BlockHistogram* histogram) {
    const auto* p = static_cast<const typename F::Raw*>(data);
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kStartsAsFp32<F>)
        if (histogram && histogram->top > 0 && n % kGroup == 0)
            return measure_block<F, GuessedCount<F>>(p, n, into, histogram);
#endif
    measure_block<F, NoCount>(p, n, into, histogram);
}

}  // namespace mp::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
