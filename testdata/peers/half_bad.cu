// Eight numerics defects in __half and __nv_bfloat16 code, one per marked line. Compilers, clang-tidy
// and cppcheck accept every one of them: CUDA's half types are classes, so each loss hides in a
// constructor call. half_good.cu holds the clean twins.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// 1. The sum stops growing once it reaches 2048 ones.
__half sum(const __half* x, int n) {
    __half total = __float2half(0.0f);
    for (int i = 0; i < n; ++i) total = __hadd(total, x[i]);  // defect 1: MP401
    return total;
}

// 2. fp16 ends at 65504: the mask value becomes -inf and an all-masked row becomes NaN.
__half mask_value() {
    return __float2half(-1e9f);  // defect 2: MP301
}

// 3. The same for a bound that looks harmless.
__half largest_step() {
    return __float2half(70000.0f);  // defect 3: MP301
}

// 4. 1e-8 is below half of the smallest fp16 subnormal: the guard against division by zero is zero.
__half normalise(__half x, __half norm) {
    const __half eps = __float2half(1e-8f);  // defect 4: MP302
    return __hdiv(x, __hadd(norm, eps));
}

// 5. A learning rate warm-up rounded to 11 bits without a word.
void set_rate(__half* rate, float warm_up) {
    *rate = warm_up * 3e-4f;  // defect 5: MP602
}

// 6. Widened, narrowed, widened: the middle step throws 13 bits away for nothing.
float through_half(float g) {
    return __half2float(__float2half(g));  // defect 6: MP601
}

// 7. The same through bf16, 16 bits.
float through_bf16(float g) {
    const __nv_bfloat16 h = __float2bfloat16(g);
    return __bfloat162float(h);  // defect 7: MP601
}

// 8. Positions above 2048 collide.
void positions(__half* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = __int2half_rn(i);  // defect 8: MP306
}
