// What ATen/cuda/Atomic.cuh declares; extensions that do not include it define their own.
#pragma once

#include "mp_cuda.h"

#if defined(__CUDA__)
// Atomics on torch's own half types.
#define MP_ATOMIC(T) __device__ T gpuAtomicAdd(T*, T); __device__ void gpuAtomicAddNoReturn(T*, T);
MP_ATOMIC(float) MP_ATOMIC(double) MP_ATOMIC(int) MP_ATOMIC(int64_t) MP_ATOMIC(uint8_t) MP_ATOMIC(int8_t)
MP_ATOMIC(int16_t) MP_ATOMIC(bool) MP_ATOMIC(c10::Half) MP_ATOMIC(c10::BFloat16)
#undef MP_ATOMIC
#define MP_ATOMIC(T) \
    __device__ T atomicAdd(T*, T); __device__ T gpuAtomicMul(T*, T); __device__ T gpuAtomicMax(T*, T); \
    __device__ T gpuAtomicMin(T*, T);
MP_ATOMIC(c10::Half) MP_ATOMIC(c10::BFloat16)
#undef MP_ATOMIC
__device__ void atomicAdd(int64_t*, int64_t);
__device__ void atomicAdd(uint8_t*, uint8_t);
__device__ void atomicAdd(int8_t*, int8_t);
__device__ void atomicAdd(int16_t*, int16_t);
__device__ void atomicAdd(bool*, bool);
namespace at {
namespace native {
template <class T, class I> __device__ void fastAtomicAdd(T*, I, const I, T, bool);
template <class T> __device__ void fastSpecializedAtomicAdd(T*, long, long, T);
}  // namespace native
}  // namespace at
using at::native::fastAtomicAdd;
#endif
