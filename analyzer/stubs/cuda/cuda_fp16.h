// IEEE half on the device: __half, __half2 and their functions.
#pragma once

#include "cuda_runtime.h"

#define MP_H __half
#define MP_H2 __half2
#define MP_RAW __half_raw
#define MP_RAW2 __half2_raw
#define MP_N half
#define MP_N2 half2
#define MP_OTHER __nv_bfloat16
#ifdef __CUDA_NO_HALF_CONVERSIONS__
#define MP_CONVERT 0
#else
#define MP_CONVERT 1
#endif
#ifdef __CUDA_NO_HALF_OPERATORS__
#define MP_OPERATORS 0
#else
#define MP_OPERATORS 1
#endif
#ifdef __CUDA_NO_HALF2_OPERATORS__
#define MP_OPERATORS_2 0
#else
#define MP_OPERATORS_2 1
#endif
#include "mp_half_family.inc"
#undef MP_H
#undef MP_H2
#undef MP_RAW
#undef MP_RAW2
#undef MP_N
#undef MP_N2
#undef MP_OTHER
#undef MP_CONVERT
#undef MP_OPERATORS
#undef MP_OPERATORS_2

typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half nv_half;
typedef __half2 nv_half2;
#ifndef CUDA_NO_HALF
typedef __half half;
typedef __half2 half2;
#endif
#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00u)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fffu)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bffu)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00u)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001u)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000u)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000u)
