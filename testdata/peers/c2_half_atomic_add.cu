#include <cuda_fp16.h>

__global__ void histogram_bad(const __half* x, __half* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, x[i]);  // defect C2: MP403
}

__global__ void histogram_good(const __half* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, __half2float(x[i]));
}
