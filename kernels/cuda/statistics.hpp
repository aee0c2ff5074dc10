#pragma once

#include "kernels/cuda/list.hpp"
#include "kernels/numerics/tensor_stats.hpp"

// Statistics of a tensor: what each thread does. A thread takes a few vectors of 16 bytes at once ("a chunk"). Sums
// of a chunk start in fp32, in four lanes of at most 8 values, after the chunk is scaled by a power of two to below
// 4; they go on in fp64. Where the squares of a chunk cancel, its mean is subtracted first, from the registers. A
// chunk with NaN or infinity is added element by element in fp64. All means are taken relative to the tensor's
// first value ("pivot"), so that the totals of threads and blocks only add up.

namespace mp::cuda {

// Counts nothing.
struct NoHistogram {
    static constexpr bool kCounts = false;
    MP_HD void add(U32) {}
};

template <DType D, class Histogram>
struct Statistics {
    using F = Format<D>;
    using Raw = typename F::Raw;
    using Key = typename F::Key;
    using Result = TensorStats;
    static constexpr int kTensors = 1;
    enum Sum { kSum, kSquares, kAway, kSpread, kSums };
    enum Count { kZero, kSubnormal, kSaturated, kNan, kPosInf, kNegInf, kCounts };
    enum Maximum { kHighest, kNotLowest, kMaxima };  // keys; of the lowest above 0 the complement of one less
    using Total = Totals<kSums, kCounts, kMaxima>;

    // Vectors of a chunk. More loads in flight need more registers.
    static constexpr int kChunk = F::kBytes == 1 ? 2 : 4;
    static constexpr U64 kTile =
        U64{kChunk} * kThreads * F::kPerVector;  // elements that a block takes at once

    double pivot = 0;
    double sums[kSums] = {};
    U32 counts[kCounts] = {};
    Key highest = 0, lowest_less_one = ~Key{0};
    Histogram histogram;

    MP_HD static double pivot_of(const Share<1>& share) {
        if (share.elements == 0) return 0;
        const Raw first = read<D>(share.data[0]);
        return F::key(first) < F::kBeyondFinite ? value_of<D>(first) : 0;
    }

    MP_HD void add_value(double x) {
        const double away = x - pivot;
        sums[kSum] += x;
        sums[kSquares] += x * x;
        sums[kAway] += away;
        sums[kSpread] += away * away;
    }

    MP_HD void count_nonfinite(Raw raw, Key key) {
        const bool infinite = F::kTable.has_infinity() && key == F::kBeyondFinite;
        const bool negative = raw >> (F::kTable.width() - 1) & 1;
        counts[kNan] += !infinite;
        counts[kPosInf] += infinite && !negative;
        counts[kNegInf] += infinite && negative;
    }

    MP_HD void add_element(Raw raw) {
        const Key key = F::key(raw);
        if (key >= F::kBeyondFinite) return count_nonfinite(raw, key);
        counts[kZero] += key == 0;
        counts[kSubnormal] += key != 0 && key < F::kMinNormal;
        counts[kSaturated] += key == F::kSaturated;
        if (key > highest) highest = key;
        const Key less = key - 1;  // 0 becomes the largest
        if (key != 0 && less < lowest_less_one) lowest_less_one = less;
        const double x = value_of<D>(raw);
        add_value(x);
        if constexpr (Histogram::kCounts) histogram.add(bin_of(x));
    }

    // ---- A chunk of a narrow format. -------------------------------------------------------------

    template <int Vectors>
    struct Words {
        static constexpr int kElements = Vectors * F::kPerVector;
        static constexpr int kCount = F::kPaired ? kElements / 2 : kElements;
        U32 word[kCount];

        MP_HD explicit Words(const Vector (&from)[Vectors]) {
#pragma unroll
            for (int v = 0; v < Vectors; ++v)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const U32 w = from[v].word[i];
                    if constexpr (F::kBytes ==
                                  1) {  // bytes 0, 1 and 2, 3 into the upper halves of two lanes each
                        word[(v * 4 + i) * 2] = (w & 0x00FFu) << 8 | (w & 0xFF00u) << 16;
                        word[(v * 4 + i) * 2 + 1] = (w >> 8 & 0xFF00u) | (w & 0xFF000000u);
                    } else {
                        word[v * 4 + i] = w;
                    }
                }
        }
        // Calls each(float, element) for the values in order.
        template <class Each>
        MP_HD void values(Each&& each) const {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                if constexpr (F::kPaired) {
                    float low, high;
                    lane_values<D>(word[i], low, high);
                    each(low, 2 * i);
                    each(high, 2 * i + 1);
                } else {
                    each(as_float(word[i]), i);
                }
            }
        }
    };

    MP_HD static constexpr U32 both(U32 key) { return F::kPaired ? key | key << 16 : key; }
    static constexpr U32 kSigns = F::kPaired ? 0x80008000u : 0x80000000u;
    static constexpr U32 kOnes = F::kPaired ? 0x00010001u : 1u;

    MP_HD static U32 most(U32 a, U32 b) {
        if constexpr (F::kPaired) return larger_lanes(a, b);
        return larger(a, b);
    }
    MP_HD static U32 least(U32 a, U32 b) {
        if constexpr (F::kPaired) return smaller_lanes(a, b);
        return smaller(a, b);
    }
    MP_HD static U32 largest_lane(U32 w) { return F::kPaired ? larger(w & 0xFFFFu, w >> 16) : w; }
    MP_HD static U32 smallest_lane(U32 w) { return F::kPaired ? smaller(w & 0xFFFFu, w >> 16) : w; }
    MP_HD static U32 lanes(U32 counted) { return F::kPaired ? sum_of_lanes(counted) : counted; }

    // Zeros, subnormals, and the smallest magnitude above 0. With its sign bit set, a lane does not borrow from the
    // next one, and loses the bit when it is below what is subtracted.
    template <int Vectors>
    MP_HD void count_low(const Words<Vectors>& words) {
        constexpr U32 kMagnitudes = both(F::kMagnitude), kNormal = both(F::kMinNormal);
        U32 nonzero = 0, normal = 0, lowest = ~0u;
#pragma unroll
        for (int i = 0; i < words.kCount; ++i) {
            const U32 key = (words.word[i] & kMagnitudes) | kSigns;
            const U32 less = key - kOnes;
            nonzero += less >> (F::kPaired ? 15 : 31) & kOnes;
            normal += (key - kNormal) >> (F::kPaired ? 15 : 31) & kOnes;
            lowest = least(lowest, less ^ kSigns);
        }
        const U32 zeros = words.kElements - lanes(nonzero);
        counts[kZero] += zeros;
        counts[kSubnormal] += words.kElements - lanes(normal) - zeros;
        take_lowest(smallest_lane(lowest));
    }
    MP_HD void take_lowest(U32 less_one) {
        const U32 none = F::kPaired ? 0xFFFFu : ~0u;
        if (less_one != none && less_one < lowest_less_one) lowest_less_one = less_one;
    }

    template <int Vectors>
    MP_HD void count_saturated(const Words<Vectors>& words) {
        constexpr U32 kMagnitudes = both(F::kMagnitude);
        constexpr U32 kRest = F::kPaired ? both(0x8000u - F::kSaturated) : 0x80000000u - F::kSaturated;
        U32 count = 0;
#pragma unroll
        for (int i = 0; i < words.kCount; ++i)
            count += ((words.word[i] & kMagnitudes) + kRest) >> (F::kPaired ? 15 : 31) & kOnes;
        counts[kSaturated] += lanes(count);
    }

    // The power of two that brings a chunk's largest magnitude to between 1 and 4, and its inverse. 1 for a format
    // whose squares are far from the limits of fp32.
    static constexpr bool kScales = F::kTable.exponent_bits == 8;
    MP_HD static void scale_for(U32 top, float& down, double& up) {
        down = 1, up = 1;
        if constexpr (kScales) {
            constexpr U32 kLowest = 27, kHighest = 253;
            const U32 field = smaller(larger(top >> F::kTable.mantissa_bits, kLowest), kHighest);
            down = as_float((254 - field) << 23);
            up = as_double(static_cast<U64>(field + 1023 - 127) << 52);
        }
    }

    struct Lanes {
        float lane[4] = {0, 0, 0, 0};
        MP_HD float total() const { return (lane[0] + lane[1]) + (lane[2] + lane[3]); }
    };

    template <int Vectors>
    MP_HD void add_sums(const Words<Vectors>& words, U32 top) {
        constexpr int kElements = Words<Vectors>::kElements;
        constexpr double kShare = 1.0 / kElements;
        float down;
        double up;
        scale_for(top, down, up);
        Lanes first, second;
        words.values([&](float value, int i) {
            const float x = kScales ? value * down : value;
            first.lane[i & 3] += x;
            second.lane[i & 3] = fused(x, x, second.lane[i & 3]);
            if constexpr (Histogram::kCounts) histogram.add(bits_of(value) >> 23 & 0xFF);
        });
        const double sum = first.total(), squares = second.total();
        double mean = sum * kShare, spread = squares - sum * mean;
        if (spread <= squares * 0x1p-4 && squares > 0) measure_spread(words, down, mean, spread);
        const double away = mean * up - pivot;
        sums[kSum] += sum * up;
        sums[kSquares] += squares * up * up;
        sums[kAway] += kElements * away;
        sums[kSpread] += spread * up * up + kElements * away * away;
    }

    // Sums of the distances to a first guess of the mean.
    template <int Vectors>
    MP_HD static void measure_spread(const Words<Vectors>& words, float down, double& mean, double& spread) {
        constexpr double kShare = 1.0 / Words<Vectors>::kElements;
        const auto guess = static_cast<float>(mean);
        Lanes first, second;
        words.values([&](float value, int i) {
            const float x = fused(value, down, -guess);
            first.lane[i & 3] += x;
            second.lane[i & 3] = fused(x, x, second.lane[i & 3]);
        });
        const double sum = first.total(), squares = second.total();
        mean = guess + sum * kShare;
        spread = squares - sum * (sum * kShare);
        if (spread < 0) spread = 0;
    }

    // Returns false and adds nothing when a value is not finite.
    template <int Vectors>
    MP_HD bool add_chunk(const Vector (&vectors)[Vectors]) {
        const Words<Vectors> words(vectors);
        constexpr U32 kMagnitudes = both(F::kMagnitude);
        U32 high = 0, low = ~0u;
#pragma unroll
        for (int i = 0; i < words.kCount; ++i) {
            const U32 key = words.word[i] & kMagnitudes;
            high = most(high, key);
            low = least(low, key);
        }
        const U32 top = largest_lane(high), bottom = smallest_lane(low);
        if (top >= F::kBeyondFinite) return false;
        highest = larger(highest, top);
        if (bottom < F::kMinNormal)
            count_low(words);
        else
            take_lowest(bottom - 1);
        if (top == F::kSaturated) count_saturated(words);
        add_sums(words, top);
        return true;
    }

    // ---- A thread's share. -----------------------------------------------------------------------

    MP_HD void add_elements(const char* from, int n) {
#pragma unroll 1
        for (int i = 0; i < n; ++i) add_element(read<D>(from + i * F::kBytes));
    }

    template <int Vectors>
    MP_HD void add_vectors(const Vector* from) {
        Vector vectors[Vectors];
#pragma unroll
        for (int v = 0; v < Vectors; ++v) vectors[v] = load(from + U64{kThreads} * v);
        if constexpr (F::kBytes < 8) {
            if (add_chunk(vectors)) return;
#pragma unroll 1
            for (int v = 0; v < Vectors; ++v)
                add_elements(reinterpret_cast<const char*>(from + U64{kThreads} * v), F::kPerVector);
        } else {
#pragma unroll
            for (int v = 0; v < Vectors; ++v)
#pragma unroll
                for (int i = 0; i < 4; i += 2)
                    add_element(static_cast<U64>(vectors[v].word[i + 1]) << 32 | vectors[v].word[i]);
        }
    }

    MP_HD void take_flat(const Share<1>& share, U32 thread) {
        const auto* vectors = reinterpret_cast<const Vector*>(share.data[0] + share.head * F::kBytes);
        const U64 count = (share.elements - share.head) / F::kPerVector;
        const U64 tiles = count / (kChunk * kThreads);
#pragma unroll 1
        for (U64 i = share.block; i < tiles; i += share.blocks)
            add_vectors<kChunk>(vectors + i * (kChunk * kThreads) + thread);
        if (share.block != tiles % share.blocks) return;
#pragma unroll 1
        for (U64 i = tiles * (kChunk * kThreads) + thread; i < count; i += kThreads)
            add_vectors<1>(vectors + i);
        if (thread < share.head) add_element(read<D>(share.data[0] + thread * F::kBytes));
        const U64 last = share.head + count * F::kPerVector + thread;
        if (last < share.elements) add_element(read<D>(share.data[0] + last * F::kBytes));
    }

    MP_HD void take_strided(const Share<1>& share, U32 thread) {
#pragma unroll 1
        for (U64 k = U64{share.block} * kThreads + thread; k < share.elements;
             k += U64{share.blocks} * kThreads) {
            std::int64_t offset[1];
            offsets_of(share, k, offset);
            add_element(read<D>(share.data[0] + offset[0]));
        }
    }

    MP_HD Total take(const Share<1>& share, U32 thread) {
        pivot = pivot_of(share);
        if (share.axes)
            take_strided(share, thread);
        else
            take_flat(share, thread);
        Total total = Total::of(sums, counts);
        total.maxima[kHighest] = highest;
        total.maxima[kNotLowest] = static_cast<Key>(~lowest_less_one);
        return total;
    }

    // ---- The totals of the tensor as what the CPU's kernels return. -----------------------------

    MP_HD static void finish(const Total& total, const Share<1>& share, Result& out) {
        Result r;
        r.count = share.elements;
        r.nan = total.counts[kNan];
        r.pos_inf = total.counts[kPosInf];
        r.neg_inf = total.counts[kNegInf];
        r.zero = total.counts[kZero];
        r.subnormal = total.counts[kSubnormal];
        r.saturated = total.counts[kSaturated];
        r.amax = value_of<D>(F::raw(static_cast<Key>(total.maxima[kHighest])));
        const auto not_lowest = static_cast<Key>(total.maxima[kNotLowest]);
        r.amin = not_lowest == 0 ? 0 : value_of<D>(F::raw(static_cast<Key>(~not_lowest) + 1));
        r.sum = total.sums[kSum];
        r.sum_squares = total.sums[kSquares];
        const U64 finite = r.count - r.nan - r.pos_inf - r.neg_inf;
        if (finite > 0) {
            const double n = static_cast<double>(finite), shift = total.sums[kAway] / n;
            r.mean = finite == 1 ? r.sum : pivot_of(share) + shift;
            r.m2 = finite == 1 ? 0 : total.sums[kSpread] - total.sums[kAway] * shift;
            if (r.m2 < 0) r.m2 = 0;
            if (r.m2 != r.m2) r.m2 = as_double(U64{0x7FF} << 52);  // squares of fp64 beyond 1e154
        }
        out = r;
    }
    // Zeros have the exponent field of bin 0.
    MP_HD static U64 zeros_in_bin_0(const Total& total) { return total.counts[kZero]; }
};

}  // namespace mp::cuda
