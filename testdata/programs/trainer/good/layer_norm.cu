// Layer norm over the last dimension, one block per row.
#include <cuda_fp16.h>

#include "reduce.cuh"

template <typename T>
__global__ void layer_norm(T* out, float* rstd_out, const T* x, const T* weight, int n) {
    const T* row = x + blockIdx.x * n;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += kThreads) {
        const float v = static_cast<float>(row[i]);
        sum += v;
        squares += v * v;
    }
    __shared__ float s_mean;
    __shared__ float s_variance;
    sum = block_sum(sum);
    squares = block_sum(squares);
    if (threadIdx.x == 0) {
        s_mean = sum / n;
        s_variance = squares / n - s_mean * s_mean;
    }
    __syncthreads();
    const float rstd = rsqrtf(s_variance + 1e-5f);
    if (threadIdx.x == 0) rstd_out[blockIdx.x] = rstd;
    for (int i = threadIdx.x; i < n; i += kThreads)
        out[blockIdx.x * n + i] =
            static_cast<T>((static_cast<float>(row[i]) - s_mean) * rstd * static_cast<float>(weight[i]));
}

void layer_norm_half(__half* out, float* rstd, const __half* x, const __half* weight, int rows, int n) {
    layer_norm<__half><<<rows, kThreads>>>(out, rstd, x, weight, n);
}

void layer_norm_float(float* out, float* rstd, const float* x, const float* weight, int rows, int n) {
    layer_norm<float><<<rows, kThreads>>>(out, rstd, x, weight, n);
}
