// Device-side random generators.
#pragma once

#include "curand.h"

struct curandStateXORWOW { unsigned int d, v[5]; };
struct curandStatePhilox4_32_10 { unsigned int STATE; };
struct curandStateMRG32k3a { unsigned int s[6]; };
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef curandStateMRG32k3a curandStateMRG32k3a_t;

#define MP_RANDOM(S) \
    MP_DEV void curand_init(unsigned long long, unsigned long long, unsigned long long, S*); \
    MP_DEV void skipahead(unsigned long long, S*); \
    MP_DEV unsigned int curand(S*); \
    MP_DEV float curand_uniform(S*); \
    MP_DEV double curand_uniform_double(S*); \
    MP_DEV float curand_normal(S*); \
    MP_DEV float2 curand_normal2(S*); \
    MP_DEV double curand_normal_double(S*); \
    MP_DEV float curand_log_normal(S*, float, float);
MP_RANDOM(curandStateXORWOW)
MP_RANDOM(curandStatePhilox4_32_10)
MP_RANDOM(curandStateMRG32k3a)
#undef MP_RANDOM
MP_DEV uint4 curand4(curandStatePhilox4_32_10*);
MP_DEV float4 curand_uniform4(curandStatePhilox4_32_10*);
MP_DEV float4 curand_normal4(curandStatePhilox4_32_10*);
