#pragma once

#include <cstdint>

#include "kernels/cuda/words.hpp"

// The argument of a kernel: a list of tensors, by value, in 4 KB (every driver) or nearly 32 KB (CUDA 12.1 and later).
// Each tensor has a range of the grid's blocks. A tensor is "flat" (contiguous, and aligned after `head` elements), or
// its axes are at the end of the list.

namespace mp::cuda {

inline constexpr U32 kThreads = 256;  // in a block
inline constexpr U32 kWarp = 32;      // threads
inline constexpr U32 kWarps = kThreads / kWarp;

template <int Tensors>
struct Axis {
    U64 size;
    std::int64_t strides[Tensors];  // bytes
};

template <int Tensors>
struct Entry {
    const char* data[Tensors];
    U64 elements;
    U32 first_block;
    std::uint16_t result;  // index in the launch's results
    std::uint8_t head;     // elements before the aligned ones, when flat
    std::uint8_t dims;     // 0: flat
};

struct ListHead {
    void* results;    // pinned host memory
    U64* histograms;  // pinned host memory, 256 bins each; or null
    U64* partials;    // device memory: a block's totals
    U64* bins;        // device memory, 256 for each entry, zero between launches
    U32* tickets;     // device memory, one for each entry, zero between launches
    U32 entries;
    U32 blocks;
    std::uint8_t dtypes[4];  // of the tensors, where a kernel serves several
    std::uint8_t kinds;      // flags of the measure
};

inline constexpr int kSmallList = 4096;  // bytes of kernel arguments
inline constexpr int kLargeList = 32764;
inline constexpr int kLongArguments = 12010;  // CUDA 12.1, the first that takes kLargeList

// Entries grow from the front of `room`, axes from its end; entry i's axes start at index axes_of(i).
template <int Tensors, int Bytes>
struct List {
    static constexpr int kTensors = Tensors;
    static constexpr U32 kRoom = (Bytes - sizeof(ListHead)) / 8 * 8;
    ListHead head;
    alignas(8) unsigned char room[kRoom];

    MP_HD const Entry<Tensors>* entries() const { return reinterpret_cast<const Entry<Tensors>*>(room); }
    // `elements` of a tensor that is not flat: the offset of its axes, outermost first.
    MP_HD const Axis<Tensors>* axes(const Entry<Tensors>& entry) const {
        return reinterpret_cast<const Axis<Tensors>*>(room + entry.elements);
    }
};

// What a block is to do: its share of one tensor.
template <int Tensors>
struct Share {
    const char* data[Tensors];
    const Axis<Tensors>* axes;  // null: flat
    int dims;
    U32 head;
    U64 elements;
    U32 block, blocks;  // this one, and the number of blocks of the tensor
    const ListHead* list;
};

template <int Tensors, int Bytes>
MP_HD inline Share<Tensors> share_of(const List<Tensors, Bytes>& list, U32 index, U32 block) {
    const Entry<Tensors>& entry = list.entries()[index];
    const U32 end = index + 1 < list.head.entries ? list.entries()[index + 1].first_block : list.head.blocks;
    Share<Tensors> share;
    for (int t = 0; t < Tensors; ++t) share.data[t] = entry.data[t];
    share.axes = entry.dims == 0 ? nullptr : list.axes(entry);
    share.dims = entry.dims;
    share.head = entry.head;
    share.elements = entry.elements;
    if (entry.dims != 0) {
        share.elements = 1;
#pragma unroll 1
        for (int i = 0; i < entry.dims; ++i) share.elements *= share.axes[i].size;
    }
    share.block = block - entry.first_block;
    share.blocks = end - entry.first_block;
    share.list = &list.head;
    return share;
}

// The entry that a block belongs to: the last one whose first block is not above it.
template <int Tensors, int Bytes>
MP_HD inline U32 entry_of(const List<Tensors, Bytes>& list, U32 block) {
    U32 low = 0, high = list.head.entries;
    while (high - low > 1) {
        const U32 middle = (low + high) / 2;
        if (list.entries()[middle].first_block <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Offsets in bytes of element k of a tensor with axes.
template <int Tensors>
MP_HD inline void offsets_of(const Share<Tensors>& share, U64 k, std::int64_t (&offset)[Tensors]) {
    for (int t = 0; t < Tensors; ++t) offset[t] = 0;
#pragma unroll 1
    for (int i = share.dims - 1; i >= 0; --i) {
        const U64 size = share.axes[i].size;
        const U64 next = (k | size) >> 32 == 0 ? static_cast<U32>(k) / static_cast<U32>(size) : k / size;
        const auto index = static_cast<std::int64_t>(k - next * size);
        for (int t = 0; t < Tensors; ++t) offset[t] += index * share.axes[i].strides[t];
        k = next;
    }
}

// The totals of a thread, a block or a tensor: all add up, and the maxima are maxima.
template <int Sums, int Counts, int Maxima>
struct Totals {
    static constexpr int kSums = Sums, kCounts = Counts, kMaxima = Maxima;
    static constexpr int kWords = Sums + Counts + Maxima;
    double sums[Sums > 0 ? Sums : 1];
    U64 counts[Counts > 0 ? Counts : 1];
    U64 maxima[Maxima > 0 ? Maxima : 1];

    MP_HD static Totals none() {
        Totals all;
        for (double& x : all.sums) x = 0;
        for (U64& x : all.counts) x = 0;
        for (U64& x : all.maxima) x = 0;
        return all;
    }
    // What a thread has added up, without maxima.
    template <class OwnSums, class OwnCounts>
    MP_HD static Totals of(const OwnSums& own_sums, const OwnCounts& own_counts) {
        Totals all = none();
        for (int i = 0; i < Sums; ++i) all.sums[i] = own_sums[i];
        for (int i = 0; i < Counts; ++i) all.counts[i] = own_counts[i];
        return all;
    }
    MP_HD void merge(const Totals& other) {
        for (int i = 0; i < Sums; ++i) sums[i] += other.sums[i];
        for (int i = 0; i < Counts; ++i) counts[i] += other.counts[i];
        for (int i = 0; i < Maxima; ++i) maxima[i] = larger(maxima[i], other.maxima[i]);
    }
    MP_HD void store(U64* to) const {
        for (int i = 0; i < Sums; ++i) to[i] = bits_of(sums[i]);
        for (int i = 0; i < Counts; ++i) to[Sums + i] = counts[i];
        for (int i = 0; i < Maxima; ++i) to[Sums + Counts + i] = maxima[i];
    }
    MP_HD static Totals read(const U64* from) {
        Totals all;
        for (int i = 0; i < Sums; ++i) all.sums[i] = as_double(from[i]);
        for (int i = 0; i < Counts; ++i) all.counts[i] = from[Sums + i];
        for (int i = 0; i < Maxima; ++i) all.maxima[i] = from[Sums + Counts + i];
        return all;
    }
};

}  // namespace mp::cuda
