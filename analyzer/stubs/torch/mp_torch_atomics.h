// Atomics on tensors' element types; only what includes ATen/cuda/Atomic.cuh or THCAtomics.cuh sees them.
#pragma once

#include <mp_torch.h>

#ifdef MP_TORCH_CUDA
// Atomics of ATen/cuda/Atomic.cuh. atomicAdd on the half types is an overload of CUDA's own name.
#define MP_TORCH_ATOMICS(T)                                 \
    __device__ T gpuAtomicAdd(T* address, T value);         \
    __device__ T gpuAtomicMul(T* address, T value);         \
    __device__ T gpuAtomicMax(T* address, T value);         \
    __device__ T gpuAtomicMin(T* address, T value);         \
    __device__ void gpuAtomicAddNoReturn(T* address, T value);
MP_TORCH_ATOMICS(float) MP_TORCH_ATOMICS(double) MP_TORCH_ATOMICS(int) MP_TORCH_ATOMICS(int64_t)
MP_TORCH_ATOMICS(uint8_t) MP_TORCH_ATOMICS(int8_t) MP_TORCH_ATOMICS(int16_t) MP_TORCH_ATOMICS(bool)
MP_TORCH_ATOMICS(c10::Half) MP_TORCH_ATOMICS(c10::BFloat16)
__device__ void atomicAdd(c10::Half* address, c10::Half value);
__device__ void atomicAdd(c10::BFloat16* address, c10::BFloat16 value);
__device__ void atomicAdd(uint8_t* address, uint8_t value);
__device__ void atomicAdd(int8_t* address, int8_t value);
__device__ void atomicAdd(int16_t* address, int16_t value);
__device__ void atomicAdd(int64_t* address, int64_t value);
__device__ void atomicAdd(bool* address, bool value);
namespace at::native {
template <typename T, typename I> __device__ void fastAtomicAdd(T* tensor, I index, I numel, T value, bool fast);
template <typename T> __device__ void fastSpecializedAtomicAdd(T* tensor, size_t index, size_t numel, T value);
}
#undef MP_TORCH_ATOMICS
#endif
