// Defects that need no GPU, and with FIXED the same program without them. MULTI_GPU is a flag of the build.
#include <cmath>
#include <cuda_fp16.h>

#ifdef MULTI_GPU
#include "zero.cuh"

void reduce(__half* gradients, float* wide, float* loss, size_t n, ncclComm_t comm, cudaStream_t s) {
    average(gradients, wide, loss, n, comm, s);
}
#endif

__global__ void adam(float* weight, float* m, const __half* grad, float lr, float beta, float scale, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float g = scale * __half2float(grad[i]);
    m[i] = beta * m[i] + (1.0f - beta) * g;
    weight[i] -= lr * m[i];
}

void step(float* weight, float* m, const __half* grad, float norm, float loss_scale, int n) {
#ifdef FIXED
    if (!std::isfinite(norm)) return;
    const float scale = (norm > loss_scale ? loss_scale / norm : 1.0f) / loss_scale;
#else
    const float scale = norm > 1.0f ? 1.0f / norm : 1.0f;
#endif
    adam<<<(n + 255) / 256, 256>>>(weight, m, grad, 1e-3f, 0.9f, scale, n);
}
