// Reductions that layer_norm.cu and bias_grad.cu share. T is the type of the partial sums.
#pragma once

#include <cuda_fp16.h>

constexpr int kThreads = 256;

// Sum of one value per thread, in shared memory; valid in thread 0.
template <typename T>
__device__ T block_sum(T value) {
    __shared__ T partial[kThreads];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int stride = kThreads / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    return partial[0];
}

// The largest value: no rounding, any type will do.
template <typename T>
__device__ T block_max(T value) {
    __shared__ T partial[kThreads];
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int stride = kThreads / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride && partial[threadIdx.x + stride] > partial[threadIdx.x])
            partial[threadIdx.x] = partial[threadIdx.x + stride];
        __syncthreads();
    }
    return partial[0];
}
