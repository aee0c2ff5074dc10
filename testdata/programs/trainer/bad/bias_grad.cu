// Gradient of a bias: the column sums of the output gradient, and what logs its size.
#include <cub/cub.cuh>
#include <cuda_fp16.h>

#include "reduce.cuh"

template <typename T>
__global__ void bias_grad(T* grad, const T* out_grad, int rows, int columns) {
    const int column = blockIdx.x;
    T mine = T(0.0f);
    for (int r = threadIdx.x; r < rows; r += kThreads) mine += out_grad[r * columns + column];  // plant: MP401 sums `rows / 256` values in half
    const T total = block_sum(mine);
    if (threadIdx.x == 0) grad[column] = total;
}

__global__ void gradient_histogram(__half* bins, const __half* grad, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[i % 64], __habs(grad[i]));  // plant: MP403 bins stop growing
}

__global__ void gradient_size(__half* out, const __half* grad, int n) {
    using Reduce = cub::BlockReduce<__half, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    const int i = blockIdx.x * kThreads + threadIdx.x;
    const __half mine = i < n ? __habs(grad[i]) : __float2half(0.0f);
    const __half total = Reduce(storage).Sum(mine);  // plant: MP402 the library adds in half
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

void launch_bias_grad(__half* grad, const __half* out_grad, __half* bins, __half* size, int rows, int columns) {
    bias_grad<__half><<<columns, kThreads>>>(grad, out_grad, rows, columns);
    gradient_histogram<<<(columns + 255) / 256, 256>>>(bins, grad, columns);
    gradient_size<<<(columns + 255) / 256, kThreads>>>(size, grad, columns);
}

void launch_bias_grad_float(float* grad, const float* out_grad, int rows, int columns) {
    bias_grad<float><<<columns, kThreads>>>(grad, out_grad, rows, columns);
}
