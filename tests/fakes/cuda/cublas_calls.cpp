// The other products of the fake libcublas.so.13. Those in terms of cublasGemmStridedBatchedEx are computed; arrays of
// pointers are not.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/fakes/cuda/calls.hpp"

namespace {

template <class T>
constexpr cudaDataType_t type_of() {
    return std::is_same_v<T, __half> ? CUDA_R_16F : std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;
}
template <class T>
constexpr cublasComputeType_t compute_of() {
    return std::is_same_v<T, __half> ? CUBLAS_COMPUTE_16F : CUBLAS_COMPUTE_32F;
}
int narrow(std::int64_t value) {
    return value <= std::numeric_limits<int>::max() ? static_cast<int>(value) : -1;
}

struct Side {
    const void* data;
    cudaDataType_t type;
    std::int64_t leading;
    long long stride = 0;
};

cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, std::int64_t m,
                        std::int64_t n, std::int64_t k, const void* alpha, const Side& a, const Side& b,
                        const void* beta, const Side& c, std::int64_t batches, cublasComputeType_t compute) {
    return cublasGemmStridedBatchedEx(handle, ta, tb, narrow(m), narrow(n), narrow(k), alpha, a.data, a.type,
                                      narrow(a.leading), a.stride, b.data, b.type, narrow(b.leading),
                                      b.stride, beta, const_cast<void*>(c.data), c.type, narrow(c.leading),
                                      c.stride, narrow(batches), compute, CUBLAS_GEMM_DEFAULT);
}

// y = alpha op(A) x + beta y, with x and y as columns.
cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t t, std::int64_t m, std::int64_t n,
                        const void* alpha, const Side& a, Side x, const void* beta, Side y,
                        std::int64_t batches = 1) {
    if (x.leading != 1 || y.leading != 1) return CUBLAS_STATUS_NOT_SUPPORTED;
    const std::int64_t rows = t == CUBLAS_OP_N ? m : n, depth = t == CUBLAS_OP_N ? n : m;
    x.leading = depth;
    y.leading = rows;
    return multiply(handle, t, CUBLAS_OP_N, rows, 1, depth, alpha, a, x, beta, y, batches,
                    CUBLAS_COMPUTE_32F);
}

}  // namespace

#define MP_BEGIN cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb
#define MP_EX(name, Int)                                                                                    \
    cublasStatus_t name(MP_BEGIN, Int m, Int n, Int k, const void* alpha, const void* a, cudaDataType at,   \
                        Int lda, const void* b, cudaDataType bt, Int ldb, const void* beta, void* c,        \
                        cudaDataType ct, Int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo) {     \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, \
                    ct, ldc, compute, algo);                                                                \
        return multiply(handle, ta, tb, m, n, k, alpha, {a, at, lda}, {b, bt, ldb}, beta, {c, ct, ldc}, 1,  \
                        compute);                                                                           \
    }
#define MP_STRIDED_EX(name, Int)                                                                           \
    cublasStatus_t name(MP_BEGIN, Int m, Int n, Int k, const void* alpha, const void* a, cudaDataType at,  \
                        Int lda, long long sa, const void* b, cudaDataType bt, Int ldb, long long sb,      \
                        const void* beta, void* c, cudaDataType ct, Int ldc, long long sc, Int batches,    \
                        cublasComputeType_t compute, cublasGemmAlgo_t algo) {                              \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, at, lda, sa, b, bt, ldb, sb, \
                    beta, c, ct, ldc, sc, batches, compute, algo);                                         \
        return multiply(handle, ta, tb, m, n, k, alpha, {a, at, lda, sa}, {b, bt, ldb, sb}, beta,          \
                        {c, ct, ldc, sc}, batches, compute);                                               \
    }
#define MP_BATCHED_EX(name, Int)                                                                            \
    cublasStatus_t name(MP_BEGIN, Int m, Int n, Int k, const void* alpha, const void* const a[],            \
                        cudaDataType at, Int lda, const void* const b[], cudaDataType bt, Int ldb,          \
                        const void* beta, void* const c[], cudaDataType ct, Int ldc, Int batches,           \
                        cublasComputeType_t compute, cublasGemmAlgo_t algo) {                               \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, \
                    ct, ldc, batches, compute, algo);                                                       \
        return CUBLAS_STATUS_NOT_SUPPORTED;                                                                 \
    }
#define MP_SGEMM_EX(name, Int)                                                                              \
    cublasStatus_t name(MP_BEGIN, Int m, Int n, Int k, const float* alpha, const void* a, cudaDataType at,  \
                        Int lda, const void* b, cudaDataType bt, Int ldb, const float* beta, void* c,       \
                        cudaDataType ct, Int ldc) {                                                         \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, \
                    ct, ldc);                                                                               \
        return multiply(handle, ta, tb, m, n, k, alpha, {a, at, lda}, {b, bt, ldb}, beta, {c, ct, ldc}, 1,  \
                        CUBLAS_COMPUTE_32F);                                                                \
    }
#define MP_PLAIN(name, Int, T)                                                                            \
    cublasStatus_t name(MP_BEGIN, Int m, Int n, Int k, const T* alpha, const T* a, Int lda, const T* b,   \
                        Int ldb, const T* beta, T* c, Int ldc) {                                          \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); \
        return multiply(handle, ta, tb, m, n, k, alpha, {a, type_of<T>(), lda}, {b, type_of<T>(), ldb},   \
                        beta, {c, type_of<T>(), ldc}, 1, compute_of<T>());                                \
    }
#define MP_STRIDED(name, Int, T)                                                                            \
    cublasStatus_t name(MP_BEGIN, Int m, Int n, Int k, const T* alpha, const T* a, Int lda, long long sa,   \
                        const T* b, Int ldb, long long sb, const T* beta, T* c, Int ldc, long long sc,      \
                        Int batches) {                                                                      \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, \
                    ldc, sc, batches);                                                                      \
        return multiply(handle, ta, tb, m, n, k, alpha, {a, type_of<T>(), lda, sa},                         \
                        {b, type_of<T>(), ldb, sb}, beta, {c, type_of<T>(), ldc, sc}, batches,              \
                        compute_of<T>());                                                                   \
    }
#define MP_BATCHED(name, Int, T)                                                                          \
    cublasStatus_t name(MP_BEGIN, Int m, Int n, Int k, const T* alpha, const T* const a[], Int lda,       \
                        const T* const b[], Int ldb, const T* beta, T* const c[], Int ldc, Int batches) { \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,  \
                    batches);                                                                             \
        return CUBLAS_STATUS_NOT_SUPPORTED;                                                               \
    }
#define MP_GROUPED(name, Int)                                                                              \
    cublasStatus_t name(cublasHandle_t handle, const cublasOperation_t ta[], const cublasOperation_t tb[], \
                        const Int m[], const Int n[], const Int k[], const float alpha[],                  \
                        const float* const a[], const Int lda[], const float* const b[], const Int ldb[],  \
                        const float beta[], float* const c[], const Int ldc[], Int count,                  \
                        const Int sizes[]) {                                                               \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,   \
                    count, sizes);                                                                         \
        return CUBLAS_STATUS_NOT_SUPPORTED;                                                                \
    }
#define MP_GROUPED_EX(name, Int)                                                                            \
    cublasStatus_t name(cublasHandle_t handle, const cublasOperation_t ta[], const cublasOperation_t tb[],  \
                        const Int m[], const Int n[], const Int k[], const void* alpha,                     \
                        const void* const a[], cudaDataType_t at, const Int lda[], const void* const b[],   \
                        cudaDataType_t bt, const Int ldb[], const void* beta, void* const c[],              \
                        cudaDataType_t ct, const Int ldc[], Int count, const Int sizes[],                   \
                        cublasComputeType_t compute) {                                                      \
        MP_REMEMBER(cublasStatus_t, #name, handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, \
                    ct, ldc, count, sizes, compute);                                                        \
        return CUBLAS_STATUS_NOT_SUPPORTED;                                                                 \
    }
#define MP_VECTOR(name, Int)                                                                            \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t t, Int m, Int n, const float* alpha,   \
                        const float* a, Int lda, const float* x, Int incx, const float* beta, float* y, \
                        Int incy) {                                                                     \
        MP_REMEMBER(cublasStatus_t, #name, handle, t, m, n, alpha, a, lda, x, incx, beta, y, incy);     \
        return multiply(handle, t, m, n, alpha, {a, CUDA_R_32F, lda}, {x, CUDA_R_32F, incx}, beta,      \
                        {y, CUDA_R_32F, incy});                                                         \
    }
#define MP_VECTOR_BATCHED(name, Int, In, Out)                                                                \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t t, Int m, Int n, const float* alpha,        \
                        const In* const a[], Int lda, const In* const x[], Int incx, const float* beta,      \
                        Out* const y[], Int incy, Int batches) {                                             \
        MP_REMEMBER(cublasStatus_t, #name, handle, t, m, n, alpha, a, lda, x, incx, beta, y, incy, batches); \
        return CUBLAS_STATUS_NOT_SUPPORTED;                                                                  \
    }
#define MP_VECTOR_STRIDED(name, Int, In, Out)                                                              \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t t, Int m, Int n, const float* alpha,      \
                        const In* a, Int lda, long long sa, const In* x, Int incx, long long sx,           \
                        const float* beta, Out* y, Int incy, long long sy, Int batches) {                  \
        MP_REMEMBER(cublasStatus_t, #name, handle, t, m, n, alpha, a, lda, sa, x, incx, sx, beta, y, incy, \
                    sy, batches);                                                                          \
        return multiply(handle, t, m, n, alpha, {a, type_of<In>(), lda, sa}, {x, type_of<In>(), incx, sx}, \
                        beta, {y, type_of<Out>(), incy, sy}, batches);                                     \
    }

// clang-format off
#define MP_VECTORS(prefix, suffix, Int, In, Out) \
    MP_VECTOR_BATCHED(prefix##gemvBatched##suffix, Int, In, Out) \
    MP_VECTOR_STRIDED(prefix##gemvStridedBatched##suffix, Int, In, Out)
#define MP_ALL(suffix, Int) \
    MP_BATCHED_EX(cublasGemmBatchedEx##suffix, Int) \
    MP_SGEMM_EX(cublasSgemmEx##suffix, Int) \
    MP_PLAIN(cublasHgemm##suffix, Int, __half) \
    MP_STRIDED(cublasSgemmStridedBatched##suffix, Int, float) \
    MP_STRIDED(cublasHgemmStridedBatched##suffix, Int, __half) \
    MP_BATCHED(cublasSgemmBatched##suffix, Int, float) \
    MP_BATCHED(cublasHgemmBatched##suffix, Int, __half) \
    MP_GROUPED(cublasSgemmGroupedBatched##suffix, Int) \
    MP_GROUPED_EX(cublasGemmGroupedBatchedEx##suffix, Int) \
    MP_VECTOR(cublasSgemv_v2##suffix, Int) \
    MP_VECTORS(cublasS, suffix, Int, float, float) \
    MP_VECTORS(cublasHSH, suffix, Int, __half, __half) \
    MP_VECTORS(cublasHSS, suffix, Int, __half, float) \
    MP_VECTORS(cublasTST, suffix, Int, __nv_bfloat16, __nv_bfloat16) \
    MP_VECTORS(cublasTSS, suffix, Int, __nv_bfloat16, float)
// clang-format on

extern "C" {
MP_ALL(, int)
MP_ALL(_64, std::int64_t)
MP_EX(cublasGemmEx_64, std::int64_t)
MP_STRIDED_EX(cublasGemmStridedBatchedEx_64, std::int64_t)
MP_PLAIN(cublasSgemm_v2_64, std::int64_t, float)
}  // extern "C"
