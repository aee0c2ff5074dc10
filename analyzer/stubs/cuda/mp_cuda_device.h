// Device-side builtins that the toolkit's headers add to what clang itself declares: atomics, votes,
// fences, cache-hinted loads. Clang's own headers (builtin variables, shuffles, math) are used as they are,
// so those calls look the same as with a toolkit.
#pragma once

#ifdef __CUDA__

#define MP_ATOMIC2(T, name) \
    MP_DEV T name(T*, T); \
    MP_DEV T name##_block(T*, T); \
    MP_DEV T name##_system(T*, T);
#define MP_ATOMIC_INTEGER(T) \
    MP_ATOMIC2(T, atomicAdd) MP_ATOMIC2(T, atomicExch) \
    MP_ATOMIC2(T, atomicMin) MP_ATOMIC2(T, atomicMax) \
    MP_ATOMIC2(T, atomicAnd) MP_ATOMIC2(T, atomicOr) MP_ATOMIC2(T, atomicXor) \
    MP_DEV T atomicCAS(T*, T, T); \
    MP_DEV T atomicCAS_block(T*, T, T); \
    MP_DEV T atomicCAS_system(T*, T, T);
MP_ATOMIC_INTEGER(int)
MP_ATOMIC_INTEGER(unsigned int)
MP_ATOMIC_INTEGER(unsigned long long)
MP_ATOMIC2(int, atomicSub)
MP_ATOMIC2(unsigned int, atomicSub)
MP_ATOMIC2(unsigned int, atomicInc)
MP_ATOMIC2(unsigned int, atomicDec)
MP_ATOMIC2(long long, atomicMin)
MP_ATOMIC2(long long, atomicMax)
MP_ATOMIC2(long long, atomicAnd)
MP_ATOMIC2(long long, atomicOr)
MP_ATOMIC2(long long, atomicXor)
MP_ATOMIC2(float, atomicAdd)
MP_ATOMIC2(float, atomicExch)
MP_ATOMIC2(double, atomicAdd)
MP_DEV unsigned short atomicCAS(unsigned short*, unsigned short, unsigned short);
MP_DEV float2 atomicAdd(float2*, float2);
MP_DEV float4 atomicAdd(float4*, float4);
#undef MP_ATOMIC_INTEGER
#undef MP_ATOMIC2

// Loads and stores with a cache hint. The toolkit has one overload per built-in type; the half types have
// their own, which win over these.
#define MP_CACHED_LOAD(name) template <class T> MP_DEV T name(const T*);
#define MP_CACHED_STORE(name) template <class T> MP_DEV void name(T*, T);
MP_CACHED_LOAD(__ldcs) MP_CACHED_LOAD(__ldcg) MP_CACHED_LOAD(__ldca) MP_CACHED_LOAD(__ldlu)
MP_CACHED_LOAD(__ldcv)
MP_CACHED_STORE(__stcs) MP_CACHED_STORE(__stcg) MP_CACHED_STORE(__stwb) MP_CACHED_STORE(__stwt)
#undef MP_CACHED_LOAD
#undef MP_CACHED_STORE

MP_DEV unsigned int __reduce_add_sync(unsigned int, unsigned int);
MP_DEV int __reduce_add_sync(unsigned int, int);
MP_DEV unsigned int __reduce_min_sync(unsigned int, unsigned int);
MP_DEV int __reduce_min_sync(unsigned int, int);
MP_DEV unsigned int __reduce_max_sync(unsigned int, unsigned int);
MP_DEV int __reduce_max_sync(unsigned int, int);
MP_DEV unsigned int __reduce_and_sync(unsigned int, unsigned int);
MP_DEV unsigned int __reduce_or_sync(unsigned int, unsigned int);
MP_DEV unsigned int __reduce_xor_sync(unsigned int, unsigned int);
MP_DEV int __dp4a(int, int, int);
MP_DEV unsigned int __dp4a(unsigned int, unsigned int, unsigned int);
MP_DEV int __dp2a_lo(int, int, int);
MP_DEV int __dp2a_hi(int, int, int);
MP_DEV void __pipeline_memcpy_async(void*, const void*, __SIZE_TYPE__, __SIZE_TYPE__ = 0);
MP_DEV void __pipeline_commit();
MP_DEV void __pipeline_wait_prior(__SIZE_TYPE__);

// What <<<...>>> calls on the host before the kernel's stub.
extern "C" unsigned int __cudaPushCallConfiguration(dim3, dim3, __SIZE_TYPE__ = 0, void* = nullptr);
extern "C" int cudaConfigureCall(dim3, dim3, __SIZE_TYPE__ = 0, struct CUstream_st* = nullptr);

#endif
