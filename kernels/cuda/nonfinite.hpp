#pragma once

#include "kernels/cuda/list.hpp"
#include "kernels/cuda/results.hpp"

// The number of NaN and infinite elements, and the index of the first: what each thread does. The axes of a strided
// tensor are in the order of its dimensions, so an element's number is its index.

namespace mp::cuda {

template <DType D>
struct Offenders {
    using F = Format<D>;
    using Result = Nonfinite;
    static constexpr int kTensors = 1;
    enum Count { kOffenders, kCounts };
    enum Maximum { kNotFirst, kMaxima };  // the complement of the lowest index
    using Total = Totals<0, kCounts, kMaxima>;
    static constexpr int kChunk = 4;
    static constexpr U64 kTile = U64{kChunk} * kThreads * F::kPerVector;

    U32 count = 0;
    U64 first = ~U64{0};

    // The sign bits of the words' parts (bytes for an 8-bit format) in which a magnitude reaches infinity or NaN. Of
    // an fp64 the upper half decides, because its mantissa below cannot carry.
    MP_HD static U32 offending(U32 word) {
        constexpr int kWidth = F::kTable.width() < 32 ? F::kTable.width() : 32;
        constexpr U32 kUnit = kWidth == 8 ? 0x01010101u : kWidth == 16 ? 0x00010001u : 1u;
        constexpr U32 kSign = kUnit << (kWidth - 1);
        constexpr auto kBeyond =
            static_cast<U32>(detail::beyond_finite(F::kTable) >> (F::kTable.width() - kWidth));
        constexpr U32 kRest = kUnit * ((U32{1} << (kWidth - 1)) - kBeyond);
        return ((word & ~kSign) + kRest) & kSign;
    }

    MP_HD static bool any(const Vector& v) {
        const U32 odd = offending(v.word[1]) | offending(v.word[3]);
        if constexpr (F::kBytes == 8) return odd != 0;
        return (odd | offending(v.word[0]) | offending(v.word[2])) != 0;
    }

    MP_HD void add_element(const char* from, U64 index) {
        if (F::key(read<D>(from)) < F::kBeyondFinite) return;
        ++count;
        if (index < first) first = index;
    }
    MP_HD void add_vector(const Share<1>& share, const Vector& v, U64 index) {
        if (!any(v)) return;
        const U64 element = share.head + index * F::kPerVector;
#pragma unroll 1
        for (int i = 0; i < F::kPerVector; ++i)
            add_element(share.data[0] + (element + i) * F::kBytes, element + i);
    }

    MP_HD void take_flat(const Share<1>& share, U32 thread) {
        const auto* vectors = reinterpret_cast<const Vector*>(share.data[0] + share.head * F::kBytes);
        const U64 in_all = (share.elements - share.head) / F::kPerVector;
        const U64 tiles = in_all / (kChunk * kThreads);
#pragma unroll 1
        for (U64 i = share.block; i < tiles; i += share.blocks) {
            const U64 start = i * (kChunk * kThreads) + thread;
            Vector v[kChunk];
#pragma unroll
            for (int k = 0; k < kChunk; ++k) v[k] = load(vectors + start + k * kThreads);
#pragma unroll
            for (int k = 0; k < kChunk; ++k) add_vector(share, v[k], start + k * kThreads);
        }
        if (share.block != tiles % share.blocks) return;
#pragma unroll 1
        for (U64 i = tiles * (kChunk * kThreads) + thread; i < in_all; i += kThreads)
            add_vector(share, load(vectors + i), i);
        if (thread < share.head) add_element(share.data[0] + thread * F::kBytes, thread);
        const U64 last = share.head + in_all * F::kPerVector + thread;
        if (last < share.elements) add_element(share.data[0] + last * F::kBytes, last);
    }

    MP_HD Total take(const Share<1>& share, U32 thread) {
        if (!share.axes) {
            take_flat(share, thread);
        } else {
#pragma unroll 1
            for (U64 k = U64{share.block} * kThreads + thread; k < share.elements;
                 k += U64{share.blocks} * kThreads) {
                std::int64_t offset[1];
                offsets_of(share, k, offset);
                add_element(share.data[0] + offset[0], k);
            }
        }
        Total total = Total::none();
        total.counts[kOffenders] = count;
        total.maxima[kNotFirst] = ~first;
        return total;
    }

    MP_HD static void finish(const Total& total, const Share<1>&, Result& out) {
        out.count = total.counts[kOffenders];
        out.first = ~total.maxima[kNotFirst];
    }
};

}  // namespace mp::cuda
