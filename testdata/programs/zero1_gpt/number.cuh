#pragma once

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

namespace zero1 {

__host__ __device__ inline float widen(float x) { return x; }
__host__ __device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__host__ __device__ inline float widen(__half x) { return __half2float(x); }

template <class T>
__host__ __device__ inline T narrow(float x);
template <>
__host__ __device__ inline float narrow<float>(float x) {
    return x;
}
template <>
__host__ __device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}
template <>
__host__ __device__ inline __half narrow<__half>(float x) {
    return __float2half_rn(x);
}

// How each library names a type.
template <class T>
struct Names;
template <>
struct Names<float> {
    static constexpr cudaDataType_t kCublas = CUDA_R_32F;
    static constexpr ncclDataType_t kNccl = ncclFloat;
};
template <>
struct Names<__nv_bfloat16> {
    static constexpr cudaDataType_t kCublas = CUDA_R_16BF;
    static constexpr ncclDataType_t kNccl = ncclBfloat16;
};
template <>
struct Names<__half> {
    static constexpr cudaDataType_t kCublas = CUDA_R_16F;
    static constexpr ncclDataType_t kNccl = ncclHalf;
};

}  // namespace zero1
