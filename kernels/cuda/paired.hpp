#pragma once

#include "kernels/cpu/measure.hpp"
#include "kernels/cuda/list.hpp"

// Divergence, stagnation and the first non-finite element: what each thread does. The first two compute every element
// in fp64, as the exact path of the CPU's kernels does: twins are fp32, so memory is still the limit on GPUs with fp64
// at half the rate of fp32. Other GPUs are slower here.

namespace mp::cuda {

// Any pattern as a double, NaN and infinity too.
template <DType D>
MP_HD inline double any_value(Pattern<D> raw) {
    using F = Format<D>;
    if constexpr (D == DType::fp64 || D == DType::fp32) {
        return value_of<D>(raw);
    } else {
        const U32 key = F::key(raw);
        if (key < F::kBeyondFinite) return value_of<D>(raw);
        const bool infinite = F::kTable.has_infinity() && key == F::kBeyondFinite;
        const U64 sign = static_cast<U64>(raw >> (F::kTable.width() - 1) & 1) << 63;
        return as_double(sign | U64{0x7FF} << 52 | (infinite ? 0 : U64{1} << 51));
    }
}

// The same of a dtype that is known at run time only.
MP_HD inline double any_value(DType dtype, const char* from) {
    switch (dtype) {
        case DType::fp64:
            return any_value<DType::fp64>(read<DType::fp64>(from));
        case DType::fp32:
            return any_value<DType::fp32>(read<DType::fp32>(from));
        case DType::fp16:
            return any_value<DType::fp16>(read<DType::fp16>(from));
        case DType::bf16:
            return any_value<DType::bf16>(read<DType::bf16>(from));
        case DType::e4m3:
            return any_value<DType::e4m3>(read<DType::e4m3>(from));
        default:
            return any_value<DType::e5m2>(read<DType::e5m2>(from));
    }
}

MP_HD inline bool is_finite(double x) { return (bits_of(x) >> 52 & 0x7FF) != 0x7FF; }

// Four elements of a format, loaded at once.
template <DType D>
struct Four {
    using Raw = Pattern<D>;
    Raw raw[4];

    MP_HD explicit Four(const char* from) {
#if defined(__CUDA_ARCH__)
        if constexpr (sizeof(Raw) == 1) {
            const U32 w = __ldg(reinterpret_cast<const unsigned*>(from));
#pragma unroll
            for (int i = 0; i < 4; ++i) raw[i] = static_cast<Raw>(w >> (8 * i));
        } else if constexpr (sizeof(Raw) == 2) {
            const uint2 w = __ldg(reinterpret_cast<const uint2*>(from));
            raw[0] = static_cast<Raw>(w.x), raw[1] = static_cast<Raw>(w.x >> 16);
            raw[2] = static_cast<Raw>(w.y), raw[3] = static_cast<Raw>(w.y >> 16);
        } else if constexpr (sizeof(Raw) == 4) {
            const uint4 w = __ldg(reinterpret_cast<const uint4*>(from));
            raw[0] = w.x, raw[1] = w.y, raw[2] = w.z, raw[3] = w.w;
        } else {
            const ulonglong2 a = __ldg(reinterpret_cast<const ulonglong2*>(from));
            const ulonglong2 b = __ldg(reinterpret_cast<const ulonglong2*>(from) + 1);
            raw[0] = a.x, raw[1] = a.y, raw[2] = b.x, raw[3] = b.y;
        }
#else
        __builtin_memcpy(raw, from, sizeof(raw));
#endif
    }
};

// F: the format of the real values, whose ulps are used. The twin is fp32 or fp64, as ListHead::dtypes[1] says.
template <DType D>
struct Diverged {
    using F = Format<D>;
    using Raw = typename F::Raw;
    using Result = Divergence;
    static constexpr int kTensors = 2;
    enum Sum { kEE, kYY, kXX, kXY, kE, kAbsE, kAbsY, kFlushedAbs, kSums };
    enum Count { kBoth, kReal, kTwin, kDiffer, kFlushed, kAboveOne, kCounts };
    enum Maximum { kUlpMax, kMaxAbs, kTwinAmax, kMaxima };  // bits of doubles that are not negative
    using Total = Totals<kSums, kCounts, kMaxima>;
    static constexpr U64 kTile = 8 * kThreads;

    double sums[kSums] = {};
    U32 counts[kCounts] = {};
    double maxima[kMaxima] = {};

    // |e| in ulps of F at y. The inverse of an ulp is a power of two, made from y's exponent field; only the upper
    // halves of the doubles matter.
    MP_HD static double ulps(double abs_e, double y) {
        constexpr int kMinExponent = 1 - F::kTable.bias;
        constexpr U32 kLowest = static_cast<U32>(kMinExponent + 1023) << 20;
        constexpr bool kSplit = D == DType::fp64;  // 2^1074 does not fit in a double: two factors
        constexpr U32 kTop = static_cast<U32>(2046 + (kSplit ? 1 : F::kTable.mantissa_bits)) << 20;
        const U32 power = static_cast<U32>(bits_of(y) >> 32) & 0x7FF00000u;
        const double scaled = abs_e * as_double(static_cast<U64>(kTop - larger(power, kLowest)) << 32);
        return kSplit ? scaled * 0x1p51 : scaled;
    }

    MP_HD void count_nonfinite(Raw raw, bool finite_x, double y, bool finite_y) {
        counts[kBoth] += !finite_x && !finite_y;
        counts[kReal] += !finite_x && finite_y;
        counts[kTwin] += finite_x && !finite_y;
        const bool infinite_x = F::kTable.has_infinity() && F::key(raw) == F::kBeyondFinite;
        const bool infinite_y = bits_of(magnitude(y)) == U64{0x7FF} << 52;
        const bool same_sign = (raw >> (F::kTable.width() - 1) & 1) == bits_of(y) >> 63;
        const bool same = infinite_x == infinite_y && (!infinite_x || same_sign);
        counts[kDiffer] += finite_x || finite_y || !same;
    }

    MP_HD static void raise(double& max, double x) { max = x > max ? x : max; }

    MP_HD static bool is_finite_pair(Raw raw, double y) {
        return F::key(raw) < F::kBeyondFinite && is_finite(y);
    }

    // Counts a pair that is not finite and replaces it by (0, 0), which adds nothing to what follows.
    MP_HD void set_apart(Raw& raw, double& y) {
        if (is_finite_pair(raw, y)) return;
        const bool finite_y = is_finite(y);
        if (finite_y) raise(maxima[kTwinAmax], magnitude(y));
        count_nonfinite(raw, F::key(raw) < F::kBeyondFinite, y, finite_y);
        raw = 0, y = 0;
    }

    MP_HD void add_flushed(Raw raw, double y) {
        if (F::key(raw) != 0 || y == 0) return;
        ++counts[kFlushed];
        sums[kFlushedAbs] += magnitude(y);
    }

    MP_HD void add_finite(Raw raw, double y) {
        const double x = value_of<D>(raw), e = x - y, abs_e = magnitude(e), abs_y = magnitude(y);
        sums[kEE] += e * e;
        sums[kYY] += y * y;
        sums[kXX] += x * x;
        sums[kXY] += x * y;
        sums[kE] += e;
        sums[kAbsE] += abs_e;
        sums[kAbsY] += abs_y;
        raise(maxima[kTwinAmax], abs_y);
        raise(maxima[kMaxAbs], abs_e);
        const double distance = ulps(abs_e, y);
        raise(maxima[kUlpMax], distance);
        counts[kAboveOne] += distance > 1;
        counts[kDiffer] += x != y;
    }

    // The rare cases of several pairs share one branch each.
    template <int Pairs>
    MP_HD void add(Raw (&raw)[Pairs], double (&y)[Pairs]) {
        bool odd = false, zero = false;
#pragma unroll
        for (int k = 0; k < Pairs; ++k) {
            odd = odd || !is_finite_pair(raw[k], y[k]);
            zero = zero || F::key(raw[k]) == 0;
        }
        if (odd)
#pragma unroll
            for (int k = 0; k < Pairs; ++k) set_apart(raw[k], y[k]);
        if (zero)
#pragma unroll
            for (int k = 0; k < Pairs; ++k) add_flushed(raw[k], y[k]);
#pragma unroll
        for (int k = 0; k < Pairs; ++k) add_finite(raw[k], y[k]);
    }
    MP_HD void add(Raw raw, double y) {
        Raw raws[1] = {raw};
        double ys[1] = {y};
        add(raws, ys);
    }

    template <DType G>
    MP_HD void take_flat(const Share<2>& share, U32 thread) {
        const char* const x = share.data[0] + share.head * sizeof(Raw);
        const char* const y = share.data[1] + share.head * sizeof(Pattern<G>);
        const U64 count = (share.elements - share.head) / 4;
#pragma unroll 2
        for (U64 i = U64{share.block} * kThreads + thread; i < count; i += U64{share.blocks} * kThreads) {
            Four<D> real(x + i * sizeof(real));
            const Four<G> twin(y + i * sizeof(twin));
            double values[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) values[k] = any_value<G>(twin.raw[k]);
            add(real.raw, values);
        }
        if (share.block != 0) return;
        if (thread < share.head) add_at<G>(share, thread);
        const U64 last = share.head + count * 4 + thread;
        if (last < share.elements) add_at<G>(share, last);
    }
    template <DType G>
    MP_HD void add_at(const Share<2>& share, U64 k) {
        add(read<D>(share.data[0] + k * sizeof(Raw)),
            any_value<G>(read<G>(share.data[1] + k * sizeof(Pattern<G>))));
    }

    template <DType G>
    MP_HD void take_strided(const Share<2>& share, U32 thread) {
#pragma unroll 1
        for (U64 k = U64{share.block} * kThreads + thread; k < share.elements;
             k += U64{share.blocks} * kThreads) {
            std::int64_t offset[2];
            offsets_of(share, k, offset);
            add(read<D>(share.data[0] + offset[0]), any_value<G>(read<G>(share.data[1] + offset[1])));
        }
    }

    template <DType G>
    MP_HD void take_all(const Share<2>& share, U32 thread) {
        if (share.axes)
            take_strided<G>(share, thread);
        else
            take_flat<G>(share, thread);
    }

    MP_HD Total take(const Share<2>& share, U32 thread) {
        if (static_cast<DType>(share.list->dtypes[1]) == DType::fp64)
            take_all<DType::fp64>(share, thread);
        else
            take_all<DType::fp32>(share, thread);
        Total total = Total::of(sums, counts);
        for (int i = 0; i < kMaxima; ++i) total.maxima[i] = bits_of(maxima[i]);
        return total;
    }

    MP_HD static void finish(const Total& total, const Share<2>& share, Result& out) {
        Result r;
        r.count = share.elements;
        r.nonfinite_both = total.counts[kBoth];
        r.nonfinite_real = total.counts[kReal];
        r.nonfinite_twin = total.counts[kTwin];
        r.compared = r.count - r.nonfinite_both - r.nonfinite_real - r.nonfinite_twin;
        r.differ = total.counts[kDiffer];
        r.flushed = total.counts[kFlushed];
        r.ulp_above_one = total.counts[kAboveOne];
        r.ulp_max = as_double(total.maxima[kUlpMax]);
        r.max_abs = as_double(total.maxima[kMaxAbs]);
        r.twin_amax = as_double(total.maxima[kTwinAmax]);
        r.ee = total.sums[kEE];
        r.yy = total.sums[kYY];
        r.xx = total.sums[kXX];
        r.xy = total.sums[kXY];
        r.e = total.sums[kE];
        r.abs_e = total.sums[kAbsE];
        r.abs_y = total.sums[kAbsY];
        r.flushed_abs = total.sums[kFlushedAbs];
        out = r;
    }
};

// before, after, moved_before, moved_after: dtypes[0] for the first two, dtypes[2] and [3] for the others. Without
// kHasTwin in ListHead::kinds every element was meant to move.
struct Stagnated {
    using Result = cpu::Stagnation;
    static constexpr int kTensors = 4;
    static constexpr std::uint8_t kHasTwin = 1;
    enum Sum { kWanted, kMovedDot, kSums };
    enum Count { kMeant, kUnmoved, kBelow, kCounts };
    using Total = Totals<kSums, kCounts, 0>;
    static constexpr U64 kTile = 8 * kThreads;

    double sums[kSums] = {};
    U32 counts[kCounts] = {};

    // Half of the distance to the next value of the format at x: a smaller addend is rounded away.
    MP_HD static double half_ulp(int min_exponent, int mantissa_bits, double x) {
        const int field = static_cast<int>(bits_of(x) >> 52 & 0x7FF) - 1023;
        const int exponent = (field > min_exponent ? field : min_exponent) - mantissa_bits - 1;
        if (exponent < -1074) return 0;
        return as_double(exponent < -1022 ? U64{1} << (exponent + 1074)
                                          : static_cast<U64>(exponent + 1023) << 52);
    }
    // For a dtype that is known at run time only.
    MP_HD static double half_ulp(DType dtype, double x) {
        switch (dtype) {
            case DType::fp64:
                return half_ulp(min_exponent<DType::fp64>, kFormat<DType::fp64>.mantissa_bits, x);
            case DType::fp32:
                return half_ulp(min_exponent<DType::fp32>, kFormat<DType::fp32>.mantissa_bits, x);
            case DType::fp16:
                return half_ulp(min_exponent<DType::fp16>, kFormat<DType::fp16>.mantissa_bits, x);
            case DType::bf16:
                return half_ulp(min_exponent<DType::bf16>, kFormat<DType::bf16>.mantissa_bits, x);
            case DType::e4m3:
                return half_ulp(min_exponent<DType::e4m3>, kFormat<DType::e4m3>.mantissa_bits, x);
            default:
                return half_ulp(min_exponent<DType::e5m2>, kFormat<DType::e5m2>.mantissa_bits, x);
        }
    }
    template <DType D>
    static constexpr int min_exponent = 1 - kFormat<D>.bias;

    MP_HD void add(DType dtype, bool told, double before, double after, double from, double to) {
        const double moved = after - before, wanted = told ? to - from : 0;
        if (!is_finite(moved) || !is_finite(wanted) || (told && wanted == 0)) return;
        ++counts[kMeant];
        sums[kWanted] += wanted * wanted;
        sums[kMovedDot] += moved * wanted;
        if (moved != 0) return;
        ++counts[kUnmoved];
        counts[kBelow] += told && magnitude(wanted) < half_ulp(dtype, before);
    }

    MP_HD static U32 bytes(DType dtype) {
        return dtype == DType::fp64                           ? 8
               : dtype == DType::fp32                         ? 4
               : dtype == DType::e4m3 || dtype == DType::e5m2 ? 1
                                                              : 2;
    }

    MP_HD Total take(const Share<4>& share, U32 thread) {
        const bool told = share.list->kinds & kHasTwin;
        DType dtype[4];
        std::int64_t width[4];
        for (int t = 0; t < 4; ++t) {
            dtype[t] = static_cast<DType>(share.list->dtypes[t]);
            width[t] = bytes(dtype[t]);
        }
#pragma unroll 1
        for (U64 k = U64{share.block} * kThreads + thread; k < share.elements;
             k += U64{share.blocks} * kThreads) {
            std::int64_t offset[4];
            if (share.axes)
                offsets_of(share, k, offset);
            else
                for (int t = 0; t < 4; ++t) offset[t] = static_cast<std::int64_t>(k) * width[t];
            const double before = any_value(dtype[0], share.data[0] + offset[0]);
            const double after = any_value(dtype[1], share.data[1] + offset[1]);
            const double from = told ? any_value(dtype[2], share.data[2] + offset[2]) : 0;
            const double to = told ? any_value(dtype[3], share.data[3] + offset[3]) : 0;
            add(dtype[0], told, before, after, from, to);
        }
        return Total::of(sums, counts);
    }

    MP_HD static void finish(const Total& total, const Share<4>& share, Result& out) {
        Result r;
        r.count = share.elements;
        r.meant_to_move = total.counts[kMeant];
        r.unmoved = total.counts[kUnmoved];
        r.below_half_ulp = total.counts[kBelow];
        r.wanted_squares = total.sums[kWanted];
        r.moved_dot = total.sums[kMovedDot];
        out = r;
    }
};

}  // namespace mp::cuda
