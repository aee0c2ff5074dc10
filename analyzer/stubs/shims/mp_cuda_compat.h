// Read before every CUDA source, after clang's own wrapper, when a real toolkit is used: what nvcc declares
// and clang 19 with that toolkit does not.
#pragma once

#ifdef __CUDA__
#include <math.h>
#include <time.h>

#include <cuda_runtime.h>

// Loads and stores with a cache hint, of any type; the toolkit's own overloads for half types win.
#define MP_CACHED_LOAD(name) template <class T> __device__ T name(const T*);
#define MP_CACHED_STORE(name) template <class T> __device__ void name(T*, T);
MP_CACHED_LOAD(__ldcs)
MP_CACHED_LOAD(__ldcg)
MP_CACHED_LOAD(__ldca)
MP_CACHED_LOAD(__ldlu)
MP_CACHED_LOAD(__ldcv)
MP_CACHED_STORE(__stcs)
MP_CACHED_STORE(__stcg)
MP_CACHED_STORE(__stwb)
MP_CACHED_STORE(__stwt)
#undef MP_CACHED_LOAD
#undef MP_CACHED_STORE

// nvcc has these in the global namespace on the host too.
#define MP_MIN_MAX(R, A, B) __host__ R min(A, B); __host__ R max(A, B);
MP_MIN_MAX(int, int, int)
MP_MIN_MAX(unsigned int, unsigned int, unsigned int)
MP_MIN_MAX(unsigned int, int, unsigned int)
MP_MIN_MAX(unsigned int, unsigned int, int)
MP_MIN_MAX(long, long, long)
MP_MIN_MAX(unsigned long, unsigned long, unsigned long)
MP_MIN_MAX(unsigned long, long, unsigned long)
MP_MIN_MAX(unsigned long, unsigned long, long)
MP_MIN_MAX(long long, long long, long long)
MP_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
MP_MIN_MAX(unsigned long long, long long, unsigned long long)
MP_MIN_MAX(unsigned long long, unsigned long long, long long)
MP_MIN_MAX(float, float, float)
MP_MIN_MAX(double, double, double)
MP_MIN_MAX(double, float, double)
MP_MIN_MAX(double, double, float)
#undef MP_MIN_MAX

#if CUDART_VERSION >= 11000
// Clang falls back to this name for kernel<<<...>>> when it was not told the toolkit's version (-nocudalib).
extern "C" cudaError_t cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
#endif
#if CUDART_VERSION >= 13000
// The signatures of CUDA 12, which most programs still use.
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int);
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = 0);
#endif
#endif
