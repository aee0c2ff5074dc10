#include <cuda_fp16.h>

__global__ void row_sum_bad(const __half* x, __half* out, int n) {
    __half acc = __float2half(0.0f);
    for (int i = 0; i < n; ++i) acc = __hadd(acc, x[i]);  // defect C1: MP401
    out[blockIdx.x] = acc;
}

__global__ void row_sum_good(const __half* x, float* out, int n) {
    float acc = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) acc += __half2float(x[i]);
    atomicAdd(out, acc);
}
