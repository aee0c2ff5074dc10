// 4-bit floats.
#pragma once

#include "cuda_fp8.h"

typedef unsigned char __nv_fp4_storage_t;
typedef unsigned char __nv_fp4x2_storage_t;
typedef unsigned short __nv_fp4x4_storage_t;
enum __nv_fp4_interpretation_t { __NV_E2M1 };
struct __nv_fp4_e2m1 {
    __nv_fp4_storage_t __x;
    __nv_fp4_e2m1() = default;
    explicit MP_HD __nv_fp4_e2m1(const __half);
    explicit MP_HD __nv_fp4_e2m1(const __nv_bfloat16);
    explicit MP_HD __nv_fp4_e2m1(const float);
    explicit MP_HD __nv_fp4_e2m1(const double);
    explicit MP_HD operator float() const;
    explicit MP_HD operator __half() const;
};
struct __nv_fp4x2_e2m1 {
    __nv_fp4x2_storage_t __x;
    __nv_fp4x2_e2m1() = default;
    explicit MP_HD __nv_fp4x2_e2m1(const float2);
    explicit MP_HD operator float2() const;
};
struct __nv_fp4x4_e2m1 {
    __nv_fp4x4_storage_t __x;
    __nv_fp4x4_e2m1() = default;
    explicit MP_HD __nv_fp4x4_e2m1(const float4);
    explicit MP_HD operator float4() const;
};
