// The kernels of kernels/cuda/optimizer.hpp. A block takes its part of one weight, and its threads add up their counts.
#include "kernels/cuda/blockwise_body.hpp"
#include "kernels/cuda/optimizer_body.hpp"

namespace mp::cuda {
namespace {

// Adds the counts of a block's threads to those of the call. A thread counts fewer than 2^32 elements.
__device__ void add_counts(const OptimizerCounts& mine, OptimizerCounts* all) {
    U32 meant = static_cast<U32>(mine.meant_to_move), stagnated = static_cast<U32>(mine.stagnated);
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        meant += __shfl_down_sync(0xFFFFFFFFu, meant, distance);
        stagnated += __shfl_down_sync(0xFFFFFFFFu, stagnated, distance);
    }
    __shared__ U32 sums[2];
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        atomicAdd(sums, meant);
        atomicAdd(sums + 1, stagnated);
    }
    __syncthreads();
    if (threadIdx.x > 1 || sums[threadIdx.x] == 0) return;
    auto* const counts = reinterpret_cast<unsigned long long*>(all) + threadIdx.x;
    atomicAdd(counts, static_cast<unsigned long long>(sums[threadIdx.x]));
}

template <class Step, int Bytes>
__device__ void run(const OptimizerList<Step, Bytes>& list) {
    if (list.head.found_inf && *list.head.found_inf != 0) return;
    U32 own = 0, blocks = 0;
    const U32 index = entry_at(list, blockIdx.x, own, blocks);
    OptimizerThread<Step> thread{list.head, list.entries[index],
                                 list.head.loss_scale ? *list.head.loss_scale : 1.0f};
    thread.run(own, blocks, threadIdx.x);
    add_counts(thread.counts, list.head.counts);
}

// Calls f with each block of the call's tensor that is this warp's. The table is copied to shared memory, because lanes
// read different entries of it.
template <class F>
__device__ void for_blocks(const BlockwiseCall& call, const F& f) {
    __shared__ blockwise::Table table;
    table.value[threadIdx.x] = call.table.value[threadIdx.x];
    if (threadIdx.x < blockwise::kCodes - 1) table.middle[threadIdx.x] = call.table.middle[threadIdx.x];
    __syncthreads();
    const U64 step = U64{gridDim.x} * kWarps;
    for (U64 block = U64{blockIdx.x} * kWarps + threadIdx.x / kWarp; block < blocks_of(call); block += step)
        f(BlockLane{call, table, block, threadIdx.x % kWarp});
}

}  // namespace

#define MP_OPTIMIZER(name, ...)                                                             \
    extern "C" __global__ void __launch_bounds__(kThreads, 4)                               \
        name##_small(const __grid_constant__ OptimizerList<__VA_ARGS__, kSmallList> list) { \
        run(list);                                                                          \
    }                                                                                       \
    extern "C" __global__ void __launch_bounds__(kThreads, 4)                               \
        name##_large(const __grid_constant__ OptimizerList<__VA_ARGS__, kLargeList> list) { \
        run(list);                                                                          \
    }

MP_OPTIMIZER(adamw, optim::AdamW)
MP_OPTIMIZER(sgd, optim::Sgd)

static_assert(kThreads == blockwise::kCodes, "each thread copies one entry of the table");

extern "C" __global__ void __launch_bounds__(kThreads)
    quantize_blocks(const __grid_constant__ BlockwiseCall call) {
    for_blocks(call, [](const BlockLane& lane) {
        float largest = lane.largest();
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            largest = blockwise::larger(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, distance));
        lane.quantize(largest);
    });
}

extern "C" __global__ void __launch_bounds__(kThreads)
    dequantize_blocks(const __grid_constant__ BlockwiseCall call) {
    for_blocks(call, [](const BlockLane& lane) { lane.dequantize(); });
}

}  // namespace mp::cuda
