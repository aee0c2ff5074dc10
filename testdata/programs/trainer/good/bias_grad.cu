// Gradient of a bias: the column sums of the output gradient, and what logs its size.
#include <cub/cub.cuh>
#include <cuda_fp16.h>

#include "reduce.cuh"

template <typename T>
__global__ void bias_grad(T* grad, const T* out_grad, int rows, int columns) {
    const int column = blockIdx.x;
    float mine = 0.0f;
    for (int r = threadIdx.x; r < rows; r += kThreads) mine += static_cast<float>(out_grad[r * columns + column]);
    const float total = block_sum(mine);
    if (threadIdx.x == 0) grad[column] = static_cast<T>(total);
}

__global__ void gradient_histogram(float* bins, const __half* grad, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[i % 64], __half2float(__habs(grad[i])));
}

__global__ void gradient_size(float* out, const __half* grad, int n) {
    using Reduce = cub::BlockReduce<float, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    const int i = blockIdx.x * kThreads + threadIdx.x;
    const float mine = i < n ? __half2float(__habs(grad[i])) : 0.0f;
    const float total = Reduce(storage).Sum(mine);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

void launch_bias_grad(__half* grad, const __half* out_grad, float* bins, float* size, int rows, int columns) {
    bias_grad<__half><<<columns, kThreads>>>(grad, out_grad, rows, columns);
    gradient_histogram<<<(columns + 255) / 256, 256>>>(bins, grad, columns);
    gradient_size<<<(columns + 255) / 256, kThreads>>>(size, grad, columns);
}

void launch_bias_grad_float(float* grad, const float* out_grad, int rows, int columns) {
    bias_grad<float><<<columns, kThreads>>>(grad, out_grad, rows, columns);
}
