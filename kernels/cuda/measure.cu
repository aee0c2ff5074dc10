// The kernels. A block takes its share of one tensor, adds up its threads, and stores its totals; the last block of a
// tensor adds up the blocks, in their order, and writes the result to pinned host memory. The order of all sums is
// fixed by the size of the tensor and the number of its blocks, so the same launch returns the same bits.
#include "kernels/cuda/nonfinite.hpp"
#include "kernels/cuda/paired.hpp"
#include "kernels/cuda/product.hpp"
#include "kernels/cuda/product_sketch.hpp"
#include "kernels/cuda/sketch.hpp"
#include "kernels/cuda/statistics.hpp"

namespace mp::cuda {
namespace {

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
__device__ U64 shuffled(U64 x, int distance) {
    return __shfl_down_sync(0xFFFFFFFFu, static_cast<unsigned long long>(x), distance);
}

// Adds up a warp; lane 0 gets the totals. Loops stay loops: a cold kernel waits for its instructions.
template <class Total>
__device__ void sum_warp(Total& total) {
#pragma unroll 1
    for (int distance = 16; distance > 0; distance /= 2) {
#pragma unroll
        for (int i = 0; i < Total::kSums; ++i) total.sums[i] += shuffled(total.sums[i], distance);
#pragma unroll
        for (int i = 0; i < Total::kMaxima; ++i)
            total.maxima[i] = larger(total.maxima[i], shuffled(total.maxima[i], distance));
    }
    bool any = false;
#pragma unroll
    for (int i = 0; i < Total::kCounts; ++i) any = any || total.counts[i] != 0;
    if (!__any_sync(0xFFFFFFFFu, any)) return;
#pragma unroll 1
    for (int distance = 16; distance > 0; distance /= 2)
#pragma unroll
        for (int i = 0; i < Total::kCounts; ++i) total.counts[i] += shuffled(total.counts[i], distance);
}

// Two values of one word of the totals. No branches, so that several are in flight.
template <class Total>
__device__ U64 merged(int word, U64 a, U64 b) {
    const U64 sum = bits_of(as_double(a) + as_double(b)), count = a + b, maximum = larger(a, b);
    return word < Total::kSums ? sum : word < Total::kSums + Total::kCounts ? count : maximum;
}

__device__ U64 read_fresh(const U64* from) {
    return __ldcg(reinterpret_cast<const unsigned long long*>(from));
}

// Rows of words in shared memory, one for each warp, or for each group of threads that reads blocks' totals.
template <class Total>
struct Rows {
    static constexpr U32 kWords = Total::kWords;
    static constexpr U32 kPitch = kWords <= 16 ? 16 : 32;
    static constexpr U32 kGroups = kThreads / kPitch;
    static constexpr U32 kRows = kGroups > kWarps ? kGroups : kWarps;
    U64 word[kRows][kWords];

    // Thread w < kWords returns word w of the sum of the first `rows` rows.
    __device__ U64 sum(U32 rows) const {
        if (threadIdx.x >= kWords) return 0;
        U64 all = word[0][threadIdx.x];
#pragma unroll 1
        for (U32 r = 1; r < rows; ++r)
            all = merged<Total>(static_cast<int>(threadIdx.x), all, word[r][threadIdx.x]);
        return all;
    }
    // Fills a row per group from the totals of blocks, each word by one thread.
    __device__ void read(const U64* partials, U32 blocks) {
        const U32 group = threadIdx.x / kPitch, at = threadIdx.x % kPitch;
        if (at >= kWords) return;
        constexpr int kAtOnce = 8;  // loads
        U64 all = 0;
#pragma unroll 1
        for (U32 b = group; b < blocks; b += kAtOnce * kGroups) {
            U64 next[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                const U64 block = b + i * kGroups;
                next[i] = block < blocks ? read_fresh(partials + block * kWords + at) : 0;
            }
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) all = merged<Total>(static_cast<int>(at), all, next[i]);
        }
        word[group][at] = all;
    }
};

// Whether this block is the last one of its tensor to come here. What the blocks before have stored is then visible.
__device__ bool is_last(U32* ticket, U32 blocks) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(ticket, 1u) == blocks - 1;
        if (last) __threadfence();
    }
    __syncthreads();
    return last;
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
    __shared__ Rows<Total> rows;
    __shared__ U32 columns[kHistogram ? kBins * 32 : 1];
    const U32 index = entry_of(list, blockIdx.x);
    const auto share = share_of(list, index, blockIdx.x);
    Measure measure;
    if constexpr (kHistogram) {
        for (U32 i = threadIdx.x; i < kBins * 32; i += kThreads) columns[i] = 0;
        measure.histogram.column = columns + threadIdx.x % 32;
        __syncthreads();
    }
    {
        Total mine = measure.take(share, threadIdx.x);
        sum_warp(mine);
        if (threadIdx.x % 32 == 0) mine.store(rows.word[threadIdx.x / 32]);
    }
    __syncthreads();
    U64 word = rows.sum(kWarps);
    U64* const bins = kHistogram ? list.head.bins + U64{index} * kBins : nullptr;
    if constexpr (kHistogram) add_bins(columns, bins);
    if (share.blocks > 1 || kHistogram) {
        if (threadIdx.x < Total::kWords)
            list.head.partials[U64{blockIdx.x} * Total::kWords + threadIdx.x] = word;
        if constexpr (kHistogram) __threadfence();  // every thread added to bins
        if (!is_last(list.head.tickets + index, share.blocks)) return;
        rows.read(list.head.partials + U64{blockIdx.x - share.block} * Total::kWords, share.blocks);
        __syncthreads();
        word = rows.sum(Rows<Total>::kGroups);
    }
    __syncthreads();
    if (threadIdx.x < Total::kWords) rows.word[0][threadIdx.x] = word;
    __syncthreads();
    const U32 result = list.entries()[index].result;
    if (threadIdx.x == 0) {
        list.head.tickets[index] = 0;
        Measure::finish(Total::read(rows.word[0]), share,
                        static_cast<typename Measure::Result*>(list.head.results)[result]);
    }
    if constexpr (kHistogram)
        hand_over_bins(bins, list.head.histograms + U64{result} * kBins,
                       Measure::zeros_in_bin_0(Total::read(rows.word[0])));
}

// Adds up one word of each thread; thread 0 returns the total.
template <class T>
__device__ T sum_block(T mine) {
    __shared__ T rows[kWarps];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) mine += shuffled(mine, distance);
    __syncthreads();
    if (threadIdx.x % 32 == 0) rows[threadIdx.x / 32] = mine;
    __syncthreads();
    T all = 0;
    for (U32 w = 0; w < kWarps; ++w) all += rows[w];
    return all;
}

// Adds up the lanes of a warp; lane 0 gets the total.
__device__ double sum_lanes(double mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) mine += shuffled(mine, distance);
    return mine;
}

// Multiplies a block's rows of a matrix; thread i < kRowsOfSketch gets the sums of row i. Neighbours in a warp read
// neighbours in memory: of a column, or of a row.
template <class Vectors>
__device__ RowSum rows_of_block(const Strided& m, std::int64_t rows, std::int64_t columns,
                                const Vectors& vectors) {
    __shared__ RowSum parts[kRowsOfSketch][kWarps + 1];
    const U32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const std::int64_t first = std::int64_t{blockIdx.x} * kRowsOfSketch;
    if (m.column == 1) {
        for (U32 i = warp; i < kRowsOfSketch; i += kWarps) {
            RowSum sum;
            if (first + i < rows) sum = part_of_row(m, first + i, columns, lane, 32, vectors);
            sum = {sum_lanes(sum.sum), sum_lanes(sum.squares)};
            if (lane < kWarps) parts[i][lane] = lane == 0 ? sum : RowSum();
        }
    } else {
        RowSum sum;
        if (first + lane < rows) sum = part_of_row(m, first + lane, columns, warp, kWarps, vectors);
        parts[lane][warp] = sum;
    }
    __syncthreads();
    RowSum all;
    if (threadIdx.x < kRowsOfSketch)
        for (U32 w = 0; w < kWarps; ++w) all.add(parts[threadIdx.x][w]);
    __syncthreads();
    return all;
}

}  // namespace

// A block computes one element again.
extern "C" __global__ void __launch_bounds__(kThreads)
    product_expect(const __grid_constant__ ProductArgument argument) {
    const Position at = position_of(argument.product, blockIdx.x);
    const double sum = sum_block(terms_of(argument.product, at, threadIdx.x));
    if (threadIdx.x == 0) argument.expected[blockIdx.x] = expected_of(argument.product, at, sum);
}

// One block compares all of them.
extern "C" __global__ void __launch_bounds__(kThreads)
    product_compare(const __grid_constant__ ProductArgument argument) {
    const ProductError mine = compared(argument, threadIdx.x);
    ProductError all;
    all.compared = sum_block(U64{mine.compared});
    all.nonfinite = sum_block(U64{mine.nonfinite});
    all.error_squares = sum_block(mine.error_squares);
    all.squares = sum_block(mine.squares);
    all.dot = sum_block(mine.dot);
    if (threadIdx.x == 0) *argument.out = all;
}

// The last block sums the vector up.
extern "C" __global__ void __launch_bounds__(kThreads)
    product_sketch_inner(const __grid_constant__ ProductSketchArgument argument) {
    const SampledProduct& p = argument.product;
    if (blockIdx.x == blocks_of_rows(p.depth)) {
        const double all = sum_block(part_of_signs(p, threadIdx.x));
        if (threadIdx.x == 0) argument.inner[p.depth] = all;
        return;
    }
    const RowSum sum = rows_of_block(p.b, p.depth, p.all_columns, Signs{p.seed});
    const std::int64_t row = std::int64_t{blockIdx.x} * kRowsOfSketch + threadIdx.x;
    if (threadIdx.x >= kRowsOfSketch || row >= p.depth) return;
    argument.inner[row] = sum.sum;
    argument.inner_squares[row] = sum.squares;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    product_sketch_expect(const __grid_constant__ ProductSketchArgument argument) {
    const SampledProduct& p = argument.product;
    const RowSum product =
        rows_of_block(p.a, p.all_rows, p.depth, Inner{argument.inner, argument.inner_squares});
    RowSum addend;
    if (p.c.data) addend = rows_of_block(p.c, p.all_rows, p.all_columns, Signs{p.seed});
    if (threadIdx.x >= kRowsOfSketch) return;
    const std::int64_t row = std::int64_t{blockIdx.x} * kRowsOfSketch + threadIdx.x;
    RowsError error;
    if (row < p.all_rows) argument.expected[row] = expected_of_row(argument, row, product, addend, error);
    const double terms = sum_lanes(error.terms);
    if (threadIdx.x == 0) argument.out[blockIdx.x].terms = terms;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    product_sketch_compare(const __grid_constant__ ProductSketchArgument argument) {
    const SampledProduct& p = argument.product;
    const RowSum sum = rows_of_block(p.d, p.all_rows, p.all_columns, Signs{p.seed});
    if (threadIdx.x >= kRowsOfSketch) return;
    const std::int64_t row = std::int64_t{blockIdx.x} * kRowsOfSketch + threadIdx.x;
    RowsError error;
    if (row < p.all_rows) error = error_of_row(argument.expected[row], sum);
    const double rows = sum_lanes(static_cast<double>(error.rows));
    const double errors = sum_lanes(error.error_squares), squares = sum_lanes(error.squares);
    if (threadIdx.x != 0) return;
    RowsError& out = argument.out[blockIdx.x];
    out.rows = static_cast<U64>(rows);
    out.error_squares = errors;
    out.squares = squares;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sketch_blocks(const __grid_constant__ SketchArgument argument) {
    const Sketch mine = sketch_of(argument.blocks, blockIdx.x, threadIdx.x);
    Sketch all;
    all.sum = sum_block(mine.sum);
    all.squares = sum_block(mine.squares);
    if (threadIdx.x == 0) argument.out[blockIdx.x] = all;
}

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
MP_KERNEL(stagnation, 4, Stagnated)

}  // namespace mp::cuda
