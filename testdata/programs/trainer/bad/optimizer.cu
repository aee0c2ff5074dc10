// AdamW on the GPU, and the schedule that feeds it.
#include <cuda_fp16.h>

struct AdamConfig {
    float rate, beta1, beta2, eps, weight_decay;
};

template <typename T>
__global__ void adamw(T* weights, float* m, float* v, const T* grads, AdamConfig c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float g = static_cast<float>(grads[i]);
    const float w = static_cast<float>(weights[i]);
    m[i] = c.beta1 * m[i] + (1.0f - c.beta1) * g;
    v[i] = c.beta2 * v[i] + (1.0f - c.beta2) * g * g;
    const float step = c.rate * (m[i] / (sqrtf(v[i]) + c.eps) + c.weight_decay * w);
    weights[i] = static_cast<T>(w - step);  // plant: MP501 no fp32 master: a step below 0.02 % of the weight is lost
}

// Gradients leave the backward pass scaled; the optimizer wants them as they are.
__global__ void unscale(float* grads, float inverse_scale, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) grads[i] = __float2half(grads[i] * inverse_scale);  // plant: MP601 through half for nothing
}

__global__ void warm_up(__half* rate, int step) {
    *rate = 3e-4f * static_cast<float>(step) / 2000.0f;  // plant: MP602 the rate is rounded to 11 bits without a word
}

void optimizer_step(__half* weights, float* m, float* v, const __half* grads, float* raw, AdamConfig c, int n) {
    unscale<<<(n + 255) / 256, 256>>>(raw, 1.0f / 65536.0f, n);
    adamw<__half><<<(n + 255) / 256, 256>>>(weights, m, v, grads, c, n);
}

void optimizer_step_float(float* weights, float* m, float* v, const float* grads, AdamConfig c, int n) {
    adamw<float><<<(n + 255) / 256, 256>>>(weights, m, v, grads, c, n);
}
