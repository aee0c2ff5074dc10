#include <cuda_fp16.h>

__global__ void normalise_bad(const __half* x, const __half* norm, __half* y, int k) {
    const __half eps = __float2half(1e-8f);  // defect C3: MP302
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) y[i] = __hdiv(x[i], __hadd(norm[i], eps));
}

__global__ void normalise_good(const __half* x, const __half* norm, __half* y, int k) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < k) y[i] = __float2half(__half2float(x[i]) / (__half2float(norm[i]) + 1e-8f));
}
