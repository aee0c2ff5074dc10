// 8-bit floats: storage classes with explicit conversions only.
#pragma once

#include "cuda_bf16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

MP_HD __nv_fp8_storage_t __nv_cvt_double_to_fp8(const double, const __nv_saturation_t,
    const __nv_fp8_interpretation_t);
MP_HD __nv_fp8_storage_t __nv_cvt_float_to_fp8(const float, const __nv_saturation_t,
    const __nv_fp8_interpretation_t);
MP_HD __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(const __half_raw, const __nv_saturation_t,
    const __nv_fp8_interpretation_t);
MP_HD __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(const __nv_bfloat16_raw, const __nv_saturation_t,
    const __nv_fp8_interpretation_t);
MP_HD __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(const float2, const __nv_saturation_t,
    const __nv_fp8_interpretation_t);
MP_HD __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(const __half2_raw, const __nv_saturation_t,
    const __nv_fp8_interpretation_t);
MP_HD __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(const __nv_bfloat162_raw, const __nv_saturation_t,
    const __nv_fp8_interpretation_t);
MP_HD __half_raw __nv_cvt_fp8_to_halfraw(const __nv_fp8_storage_t, const __nv_fp8_interpretation_t);
MP_HD __half2_raw __nv_cvt_fp8x2_to_halfraw2(const __nv_fp8x2_storage_t, const __nv_fp8_interpretation_t);

#define MP_FP8(T) \
    struct T { \
        __nv_fp8_storage_t __x; \
        T() = default; \
        explicit MP_HD T(const __half); \
        explicit MP_HD T(const __nv_bfloat16); \
        explicit MP_HD T(const float); \
        explicit MP_HD T(const double); \
        explicit MP_HD T(const unsigned short); \
        explicit MP_HD T(const unsigned int); \
        explicit MP_HD T(const unsigned long); \
        explicit MP_HD T(const unsigned long long); \
        explicit MP_HD T(const short); \
        explicit MP_HD T(const int); \
        explicit MP_HD T(const long); \
        explicit MP_HD T(const long long); \
        explicit MP_HD operator __half() const; \
        explicit MP_HD operator float() const; \
        explicit MP_HD operator __nv_bfloat16() const; \
        explicit MP_HD operator double() const; \
        explicit MP_HD operator unsigned char() const; \
        explicit MP_HD operator unsigned short() const; \
        explicit MP_HD operator unsigned int() const; \
        explicit MP_HD operator unsigned long() const; \
        explicit MP_HD operator unsigned long long() const; \
        explicit MP_HD operator signed char() const; \
        explicit MP_HD operator char() const; \
        explicit MP_HD operator short() const; \
        explicit MP_HD operator int() const; \
        explicit MP_HD operator long() const; \
        explicit MP_HD operator long long() const; \
        explicit MP_HD operator bool() const; \
    };
MP_FP8(__nv_fp8_e4m3)
MP_FP8(__nv_fp8_e5m2)
MP_FP8(__nv_fp8_e8m0)
#undef MP_FP8

#define MP_FP8_PACKED(T2, T4) \
    struct T2 { \
        __nv_fp8x2_storage_t __x; \
        T2() = default; \
        explicit MP_HD T2(const __half2); \
        explicit MP_HD T2(const __nv_bfloat162); \
        explicit MP_HD T2(const float2); \
        explicit MP_HD T2(const double2); \
        explicit MP_HD operator __half2() const; \
        explicit MP_HD operator float2() const; \
    }; \
    struct T4 { \
        __nv_fp8x4_storage_t __x; \
        T4() = default; \
        explicit MP_HD T4(const __half2, const __half2); \
        explicit MP_HD T4(const __nv_bfloat162, const __nv_bfloat162); \
        explicit MP_HD T4(const float4); \
        explicit MP_HD T4(const double4); \
        explicit MP_HD operator float4() const; \
    };
MP_FP8_PACKED(__nv_fp8x2_e4m3, __nv_fp8x4_e4m3)
MP_FP8_PACKED(__nv_fp8x2_e5m2, __nv_fp8x4_e5m2)
#undef MP_FP8_PACKED

MP_HD __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(const __nv_fp8_storage_t);
MP_HD __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(const __nv_fp8x2_storage_t);
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };
MP_HD __nv_fp8_storage_t __nv_cvt_float_to_e8m0(const float, const __nv_saturation_t, const cudaRoundMode);
