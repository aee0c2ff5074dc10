// bfloat16 on the device: __nv_bfloat16, __nv_bfloat162 and their functions.
#pragma once

#include "cuda_fp16.h"

#define MP_H __nv_bfloat16
#define MP_H2 __nv_bfloat162
#define MP_RAW __nv_bfloat16_raw
#define MP_RAW2 __nv_bfloat162_raw
#define MP_N bfloat16
#define MP_N2 bfloat162
#define MP_OTHER __half
#ifdef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define MP_CONVERT 0
#else
#define MP_CONVERT 1
#endif
#ifdef __CUDA_NO_BFLOAT16_OPERATORS__
#define MP_OPERATORS 0
#else
#define MP_OPERATORS 1
#endif
#ifdef __CUDA_NO_BFLOAT162_OPERATORS__
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

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80u)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001u)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7fu)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x8000u)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000u)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80u)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fffu)
