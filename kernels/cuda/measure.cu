// The kernels. A block takes its share of one tensor, adds up its threads, and stores its totals; the last block of a
// tensor adds up the blocks, in their order, and writes the result to pinned host memory. The order of all sums is
// fixed by the size of the tensor and the number of its blocks, so the same launch returns the same bits.
#include "kernels/cuda/nonfinite.hpp"
#include "kernels/cuda/paired.hpp"
#include "kernels/cuda/statistics.hpp"

namespace mp::cuda {
namespace {

constexpr U32 kWarps = kThreads / 32;
constexpr U32 kBins = 256;

// Columns of counters in shared memory, one per lane of a warp, so that a warp's increments meet in no bank.
struct SharedHistogram {
    static constexpr bool kCounts = true;
    U32* column = nullptr;
    __device__ void add(U32 bin) { atomicAdd(column + bin * 32, 1u); }
};

template <class T>
__device__ T shuffled(T x, int distance) {
    return __shfl_down_sync(0xFFFFFFFFu, x, distance);
}

template <class Total>
__device__ Total sum_of_warp(Total total) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Total other;
#pragma unroll
        for (int i = 0; i < Total::kSums; ++i) other.sums[i] = shuffled(total.sums[i], distance);
#pragma unroll
        for (int i = 0; i < Total::kCounts; ++i)
            other.counts[i] = shuffled(static_cast<unsigned long long>(total.counts[i]), distance);
#pragma unroll
        for (int i = 0; i < Total::kMaxima; ++i)
            other.maxima[i] = shuffled(static_cast<unsigned long long>(total.maxima[i]), distance);
        total.merge(other);
    }
    return total;
}

// Adds up a block's threads; thread 0 gets the totals.
template <class Total>
__device__ Total sum_of_block(const Total& mine, U64 (*room)[Total::kWords]) {
    const U32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Total of_warp = sum_of_warp(mine);
    __syncthreads();  // `room` may still be read
    if (lane == 0) of_warp.store(room[warp]);
    __syncthreads();
    Total all = Total::none();
    if (threadIdx.x == 0)
#pragma unroll 1
        for (U32 w = 0; w < kWarps; ++w) all.merge(room[w]);
    return all;
}

// Whether this block is the last one of its tensor to come here.
__device__ bool is_last(U32* ticket, U32 blocks) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(ticket, 1u) == blocks - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

__device__ U64 read_fresh(const U64* from) {
    return __ldcg(reinterpret_cast<const unsigned long long*>(from));
}

// Adds a block's columns to the tensor's bins in device memory.
__device__ void add_bins(const U32* columns, U64* bins) {
    for (U32 bin = threadIdx.x; bin < kBins; bin += kThreads) {
        U64 sum = 0;
        for (U32 i = 0; i < 32; ++i) sum += columns[bin * 32 + (i + threadIdx.x) % 32];
        if (sum != 0) atomicAdd(reinterpret_cast<unsigned long long*>(bins + bin), sum);
    }
}

// Moves a tensor's bins to pinned memory and clears them for the next launch. Bin 0 also counted the zeros.
__device__ void hand_over_bins(U64* bins, U64* out, U64 zeros) {
    for (U32 bin = threadIdx.x; bin < kBins; bin += kThreads) {
        const U64 count = read_fresh(bins + bin);
        out[bin] = bin == 255 ? 0 : bin == 0 ? count - zeros : count;
        bins[bin] = 0;
    }
}

template <class Measure>
constexpr bool kHasHistogram = false;
template <DType D>
constexpr bool kHasHistogram<Statistics<D, SharedHistogram>> = true;

template <class Measure, class List>
__device__ void run(const List& list) {
    using Total = typename Measure::Total;
    constexpr bool kHistogram = kHasHistogram<Measure>;
    __shared__ U64 room[kWarps][Total::kWords];
    __shared__ U32 columns[kHistogram ? kBins * 32 : 1];
    const U32 index = entry_of(list, blockIdx.x);
    const auto share = share_of(list, index, blockIdx.x);
    Measure measure;
    if constexpr (kHistogram) {
        for (U32 i = threadIdx.x; i < kBins * 32; i += kThreads) columns[i] = 0;
        measure.histogram.column = columns + threadIdx.x % 32;
        __syncthreads();
    }
    Total total = sum_of_block(measure.take(share, threadIdx.x), room);
    U64* const bins = kHistogram ? list.head.bins + U64{index} * kBins : nullptr;
    if constexpr (kHistogram) {
        add_bins(columns, bins);
        __threadfence();
        __syncthreads();
    }
    if (share.blocks > 1 || kHistogram) {
        if (threadIdx.x == 0) total.store(list.head.partials + U64{blockIdx.x} * Total::kWords);
        if (!is_last(list.head.tickets + index, share.blocks)) return;
        Total part = Total::none();
        const U32 first = blockIdx.x - share.block;
#pragma unroll 1
        for (U32 b = threadIdx.x; b < share.blocks; b += kThreads) {
            U64 words[Total::kWords];
#pragma unroll
            for (int i = 0; i < Total::kWords; ++i)
                words[i] = read_fresh(list.head.partials + U64{first + b} * Total::kWords + i);
            part.merge(words);
        }
        total = sum_of_block(part, room);
    }
    const U32 result = list.entries()[index].result;
    if (threadIdx.x == 0) {
        list.head.tickets[index] = 0;
        Measure::finish(total, share, static_cast<typename Measure::Result*>(list.head.results)[result]);
    }
    if constexpr (kHistogram) {
        __shared__ U64 zeros;
        if (threadIdx.x == 0) zeros = Measure::zeros_in_bin_0(total);
        __syncthreads();
        hand_over_bins(bins, list.head.histograms + U64{result} * kBins, zeros);
    }
}

}  // namespace

// The name of a kernel: what it measures, the format, and the bytes of its list.
#define MP_KERNEL(name, blocks, ...)                                                         \
    extern "C" __global__ void __launch_bounds__(kThreads, blocks)                           \
        name##_small(const __grid_constant__ List<__VA_ARGS__::kTensors, kSmallList> list) { \
        run<__VA_ARGS__>(list);                                                              \
    }                                                                                        \
    extern "C" __global__ void __launch_bounds__(kThreads, blocks)                           \
        name##_large(const __grid_constant__ List<__VA_ARGS__::kTensors, kLargeList> list) { \
        run<__VA_ARGS__>(list);                                                              \
    }

#define MP_FORMAT(format)                                                        \
    MP_KERNEL(statistics_##format, 3, Statistics<DType::format, NoHistogram>)    \
    MP_KERNEL(histogram_##format, 3, Statistics<DType::format, SharedHistogram>) \
    MP_KERNEL(divergence_##format, 2, Diverged<DType::format>)                   \
    MP_KERNEL(nonfinite_##format, 3, Offenders<DType::format>)

MP_FORMAT(fp64)
MP_FORMAT(fp32)
MP_FORMAT(fp16)
MP_FORMAT(bf16)
MP_FORMAT(e4m3)
MP_FORMAT(e5m2)
MP_KERNEL(standstill, 4, Stagnated)

}  // namespace mp::cuda
