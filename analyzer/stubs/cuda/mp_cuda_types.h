// CUDA's vector types, qualifiers and builtin variables as this project declares them, for files that are
// read on a machine without a CUDA toolkit. Only what changes the meaning of numerics is exact: names,
// element types, overload sets. Bodies are absent: nothing here is ever compiled to code.
#pragma once

#if defined(__CUDA__) && !defined(__CUDACC__)
#define __CUDACC__ 1
#endif
#ifdef __CUDA__
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 93
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1
#define __CUDA_API_VER_MAJOR__ 12
#define __CUDA_API_VER_MINOR__ 8
#endif
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080

#ifdef __CUDA__
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#else
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#endif
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif
#define __grid_constant__
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define CUDART_CB
#define CUDARTAPI

#ifndef MP_NO_BODY
// A body that says nothing: a template called with a lambda of internal linkage must be defined here.
#define MP_NO_BODY { __builtin_trap(); }
#endif
// MP_HD: callable on both sides. MP_DEV: device only; in plain C++ it is an ordinary function, because
// host files sometimes name device helpers in templates that are never instantiated.
#define MP_HD __host__ __device__
#define MP_DEV __device__
template <bool Holds> struct mp_only_if {};
template <> struct mp_only_if<true> { typedef void type; };

#define MP_VECTOR_1(T, E, A) struct __align__(A) T { E x; };
#define MP_VECTOR_2(T, E, A) struct __align__(A) T { E x, y; };
#define MP_VECTOR_3(T, E, A) struct __align__(A) T { E x, y, z; };
#define MP_VECTOR_4(T, E, A) struct __align__(A) T { E x, y, z, w; };
#define MP_VECTORS(N, E, A1, A2, A4) \
    MP_VECTOR_1(N##1, E, A1) MP_VECTOR_2(N##2, E, A2) MP_VECTOR_3(N##3, E, A1) MP_VECTOR_4(N##4, E, A4) \
    MP_HD N##1 make_##N##1(E); \
    MP_HD N##2 make_##N##2(E, E); \
    MP_HD N##3 make_##N##3(E, E, E); \
    MP_HD N##4 make_##N##4(E, E, E, E);
MP_VECTORS(char, signed char, 1, 2, 4)
MP_VECTORS(uchar, unsigned char, 1, 2, 4)
MP_VECTORS(short, short, 2, 4, 8)
MP_VECTORS(ushort, unsigned short, 2, 4, 8)
MP_VECTORS(int, int, 4, 8, 16)
MP_VECTORS(uint, unsigned int, 4, 8, 16)
MP_VECTORS(long, long, 8, 16, 16)
MP_VECTORS(ulong, unsigned long, 8, 16, 16)
MP_VECTORS(longlong, long long, 8, 16, 16)
MP_VECTORS(ulonglong, unsigned long long, 8, 16, 16)
MP_VECTORS(float, float, 4, 8, 16)
MP_VECTORS(double, double, 8, 16, 16)
#undef MP_VECTORS
#undef MP_VECTOR_1
#undef MP_VECTOR_2
#undef MP_VECTOR_3
#undef MP_VECTOR_4

struct dim3 {
    unsigned int x, y, z;
    MP_HD constexpr dim3(unsigned int a = 1, unsigned int b = 1, unsigned int c = 1) : x(a), y(b), z(c) {}
    MP_HD constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    MP_HD constexpr operator uint3() const { return uint3{x, y, z}; }
};

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;
