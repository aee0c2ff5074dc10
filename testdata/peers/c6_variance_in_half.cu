#include <cuda_fp16.h>

__global__ void statistics_bad(const float* x, __half* var, int n) {
    float s = 0.0f, q = 0.0f;
    for (int i = 0; i < n; ++i) {
        s += x[i];
        q += x[i] * x[i];
    }
    var[blockIdx.x] = __float2half(q / n - (s / n) * (s / n));  // defect C6: MP405
}

__global__ void statistics_good(const float* x, float* var, int n) {
    float s = 0.0f, q = 0.0f;
    for (int i = 0; i < n; ++i) {
        s += x[i];
        q += x[i] * x[i];
    }
    var[blockIdx.x] = q / n - (s / n) * (s / n);
}
