// Read before every CUDA source when there is no toolkit (-nocudainc -include mp_cuda_stub.h): takes the
// place of clang's runtime wrapper, in the same order, so that overload sets and call shapes agree with it.
#pragma once

#ifdef __CUDA__
#include <__clang_cuda_math_forward_declares.h>

#define __CUDACC__ 1
#include <cmath>
#include <cstdlib>
#include <climits>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <cstdio>

#include "mp_cuda_types.h"

#include <__clang_cuda_builtin_vars.h>

#pragma push_macro("__CUDA_ARCH__")
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 9999
#endif
#include <__clang_cuda_libdevice_declares.h>
#include <__clang_cuda_device_functions.h>
#include <__clang_cuda_math.h>
#pragma pop_macro("__CUDA_ARCH__")

// The device's overloads, which the header above declares after <cstring> had looked for names.
namespace std {
using ::memcpy;
using ::memset;
}  // namespace std

extern "C" {
__device__ int vprintf(const char*, const char*);
__device__ void free(void*) noexcept;
__device__ void* malloc(__SIZE_TYPE__) noexcept;
__device__ int printf(const char*, ...);
__device__ void __assert_fail(const char*, const char*, unsigned int, const char*) noexcept;
}

__device__ inline __cuda_builtin_threadIdx_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_threadIdx_t::operator uint3() const { return uint3{x, y, z}; }
__device__ inline __cuda_builtin_blockIdx_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_blockIdx_t::operator uint3() const { return uint3{x, y, z}; }
__device__ inline __cuda_builtin_blockDim_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_blockDim_t::operator uint3() const { return uint3{x, y, z}; }
__device__ inline __cuda_builtin_gridDim_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_gridDim_t::operator uint3() const { return uint3{x, y, z}; }

#include <__clang_cuda_cmath.h>
#pragma push_macro("__CUDA_ARCH__")
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 9999
#endif
__device__ unsigned int __isShared(const void*);
__device__ unsigned int __isGlobal(const void*);
__device__ unsigned int __isConstant(const void*);
__device__ unsigned int __isLocal(const void*);
__device__ __SIZE_TYPE__ __cvta_generic_to_shared(const void*);
__device__ __SIZE_TYPE__ __cvta_generic_to_global(const void*);
__device__ void* __cvta_shared_to_generic(__SIZE_TYPE__);
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
#include <__clang_cuda_intrinsics.h>
#pragma pop_macro("__CUDA_ARCH__")

// nvcc puts these in the global namespace on both sides; libstdc++ only in std.
#define MP_MIN_MAX(R, A, B) \
    __host__ R min(A, B); __host__ R max(A, B);
#define MP_MIN_MAX_BOTH(R, A, B) \
    MP_HD R min(A, B); MP_HD R max(A, B);
MP_MIN_MAX(int, int, int)
MP_MIN_MAX_BOTH(unsigned int, unsigned int, unsigned int)
MP_MIN_MAX_BOTH(unsigned int, int, unsigned int)
MP_MIN_MAX_BOTH(unsigned int, unsigned int, int)
MP_MIN_MAX_BOTH(long, long, long)
MP_MIN_MAX_BOTH(unsigned long, unsigned long, unsigned long)
MP_MIN_MAX_BOTH(unsigned long, long, unsigned long)
MP_MIN_MAX_BOTH(unsigned long, unsigned long, long)
MP_MIN_MAX_BOTH(long long, long long, long long)
MP_MIN_MAX_BOTH(unsigned long long, unsigned long long, unsigned long long)
MP_MIN_MAX_BOTH(unsigned long long, long long, unsigned long long)
MP_MIN_MAX_BOTH(unsigned long long, unsigned long long, long long)
MP_MIN_MAX_BOTH(float, float, float)
MP_MIN_MAX_BOTH(double, double, double)
MP_MIN_MAX_BOTH(double, float, double)
MP_MIN_MAX_BOTH(double, double, float)
#undef MP_MIN_MAX
#undef MP_MIN_MAX_BOTH

// CUDA-only math that glibc does not have, on the host side.
__host__ float rsqrtf(float);
__host__ double rsqrt(double);
__host__ float rcbrtf(float);
__host__ double rcbrt(double);
__host__ float normcdff(float);
__host__ double normcdf(double);
__host__ float erfinvf(float);
__host__ double erfinv(double);
__host__ float exp10f(float) noexcept;
__host__ double sinpi(double);
__host__ float sinpif(float);
__host__ double cospi(double);
__host__ float cospif(float);
__host__ float __saturatef(float);
__device__ void __nanosleep(unsigned int);
__device__ unsigned int __activemask();
__device__ float tanhf_approx(float);

#include <math.h>  // brings isfinite and the like into the global namespace
#include <time.h>
#include "cuda_runtime.h"
#else
#include "mp_cuda_types.h"
#endif
