// The clean twins of half_bad.cu: the same work without the defect. mp-lint has nothing to say here.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__half sum(const __half* x, int n) {
    float total = 0.0f;
    for (int i = 0; i < n; ++i) total += __half2float(x[i]);
    return __float2half(total);
}

__half mask_value() {
    return __float2half(-65504.0f);
}

__half largest_step() {
    return __float2half(60000.0f);
}

__half normalise(__half x, __half norm) {
    return __float2half(__half2float(x) / (__half2float(norm) + 1e-8f));
}

void set_rate(float* rate, float warm_up) {
    *rate = warm_up * 3e-4f;
}

float through_half(float g) {
    return g;
}

float through_bf16(const __nv_bfloat16* g) {
    return __bfloat162float(*g);
}

void positions(float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = static_cast<float>(i);
}
