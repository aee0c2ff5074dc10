#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <cstddef>
#include <cstring>

// Elements of memory in the types that the fakes know.
namespace mp::fake {

inline std::size_t width(cudaDataType_t type) {
    switch (type) {
        case CUDA_R_32F:
        case CUDA_R_32I:
            return 4;
        case CUDA_R_16F:
        case CUDA_R_16BF:
            return 2;
        case CUDA_R_64F:
            return 8;
        default:
            return 0;
    }
}

inline float rounded(float x, cudaDataType_t type) {
    if (type == CUDA_R_16F) return __half2float(__float2half_rn(x));
    if (type == CUDA_R_16BF) return __bfloat162float(__float2bfloat16_rn(x));
    return x;
}

inline float load(const void* from, std::size_t index, cudaDataType_t type) {
    if (type == CUDA_R_16F) return __half2float(static_cast<const __half*>(from)[index]);
    if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[index]);
    return static_cast<const float*>(from)[index];
}

inline void store(void* to, std::size_t index, float x, cudaDataType_t type) {
    if (type == CUDA_R_16F)
        static_cast<__half*>(to)[index] = __float2half_rn(x);
    else if (type == CUDA_R_16BF)
        static_cast<__nv_bfloat16*>(to)[index] = __float2bfloat16_rn(x);
    else
        static_cast<float*>(to)[index] = x;
}

}  // namespace mp::fake
