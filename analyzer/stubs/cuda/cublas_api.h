// cuBLAS: every type a GEMM names, and the calls training code makes.
#pragma once

#include "cuda_bf16.h"
#include "mp_cuda_enums.h"

#define CUBLAS_VER_MAJOR 12
#define CUBLAS_VER_MINOR 8
#define CUBLAS_VER_PATCH 4
#define CUBLAS_VERSION 120804
#define CUBLASAPI
#define CUBLASWINAPI

typedef struct cublasContext* cublasHandle_t;
typedef cudaDataType cublasDataType_t;

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16,
} cublasStatus_t;
typedef enum { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT } cublasSideMode_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2, CUBLAS_OP_HERMITAN = 2,
    CUBLAS_OP_CONJG = 3 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED } cublasAtomicsMode_t;
typedef enum {
    CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_ALGO0 = 0, CUBLAS_GEMM_ALGO1 = 1,
    CUBLAS_GEMM_ALGO2 = 2, CUBLAS_GEMM_ALGO3 = 3, CUBLAS_GEMM_ALGO4 = 4, CUBLAS_GEMM_ALGO5 = 5,
    CUBLAS_GEMM_ALGO23 = 23, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99, CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
    CUBLAS_GEMM_ALGO0_TENSOR_OP = 100, CUBLAS_GEMM_ALGO15_TENSOR_OP = 115,
} cublasGemmAlgo_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC = 65, CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32I_PEDANTIC = 73,
} cublasComputeType_t;

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t*);
cublasStatus_t cublasDestroy_v2(cublasHandle_t);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int*);
cublasStatus_t cublasGetProperty(libraryPropertyType, int*);
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t);
cublasStatus_t cublasGetStream_v2(cublasHandle_t, cudaStream_t*);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, cublasPointerMode_t*);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t*);
const char* cublasGetStatusString(cublasStatus_t);
const char* cublasGetStatusName(cublasStatus_t);
cublasStatus_t cublasLoggerConfigure(int, int, int, const char*);

#define MP_BLAS(L, T) \
    cublasStatus_t cublas##L##gemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, \
        const T*, const T*, int, const T*, int, const T*, T*, int); \
    cublasStatus_t cublas##L##gemmBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, \
        const T*, const T* const*, int, const T* const*, int, const T*, T* const*, int, int); \
    cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, \
        int, const T*, const T*, int, long long, const T*, int, long long, const T*, T*, int, long long, int);
#define MP_BLAS_FULL(L, T) \
    MP_BLAS(L, T) \
    cublasStatus_t cublas##L##gemv_v2(cublasHandle_t, cublasOperation_t, int, int, const T*, const T*, int, \
        const T*, int, const T*, T*, int); \
    cublasStatus_t cublas##L##ger_v2(cublasHandle_t, int, int, const T*, const T*, int, const T*, int, T*, int); \
    cublasStatus_t cublas##L##axpy_v2(cublasHandle_t, int, const T*, const T*, int, T*, int); \
    cublasStatus_t cublas##L##scal_v2(cublasHandle_t, int, const T*, T*, int); \
    cublasStatus_t cublas##L##dot_v2(cublasHandle_t, int, const T*, int, const T*, int, T*); \
    cublasStatus_t cublas##L##nrm2_v2(cublasHandle_t, int, const T*, int, T*); \
    cublasStatus_t cublas##L##asum_v2(cublasHandle_t, int, const T*, int, T*); \
    cublasStatus_t cublas##L##copy_v2(cublasHandle_t, int, const T*, int, T*, int); \
    cublasStatus_t cublas##L##geam(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, const T*, \
        const T*, int, const T*, const T*, int, T*, int); \
    cublasStatus_t cublas##L##trsmBatched(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, \
        cublasDiagType_t, int, int, const T*, const T* const*, int, T* const*, int, int);
MP_BLAS_FULL(S, float)
MP_BLAS_FULL(D, double)
cublasStatus_t cublasHgemm(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const __half*,
    const __half*, int, const __half*, int, const __half*, __half*, int);
cublasStatus_t cublasHgemmBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
    const __half*, const __half* const*, int, const __half* const*, int, const __half*, __half* const*, int, int);
cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
    const __half*, const __half*, int, long long, const __half*, int, long long, const __half*, __half*, int,
    long long, int);
cublasStatus_t cublasSgemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const float*,
    const void*, cudaDataType, int, const void*, cudaDataType, int, const float*, void*, cudaDataType, int);
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
    const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
    cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
    const void*, const void* const[], cudaDataType, int, const void* const[], cudaDataType, int, const void*,
    void* const[], cudaDataType, int, int, cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
    const void*, const void*, cudaDataType, int, long long, const void*, cudaDataType, int, long long,
    const void*, void*, cudaDataType, int, long long, int, cublasComputeType_t, cublasGemmAlgo_t);
cublasStatus_t cublasDotEx(cublasHandle_t, int, const void*, cudaDataType, int, const void*, cudaDataType, int,
    void*, cudaDataType, cudaDataType);
cublasStatus_t cublasNrm2Ex(cublasHandle_t, int, const void*, cudaDataType, int, void*, cudaDataType,
    cudaDataType);
cublasStatus_t cublasAxpyEx(cublasHandle_t, int, const void*, cudaDataType, const void*, cudaDataType, int,
    void*, cudaDataType, int, cudaDataType);
cublasStatus_t cublasScalEx(cublasHandle_t, int, const void*, cudaDataType, void*, cudaDataType, int,
    cudaDataType);
}
#undef MP_BLAS
#undef MP_BLAS_FULL

// The compute type used to be a cudaDataType; C++ callers may still pass one.
cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
    const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
    cudaDataType, cublasGemmAlgo_t);
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
    const void*, const void* const[], cudaDataType, int, const void* const[], cudaDataType, int, const void*,
    void* const[], cudaDataType, int, int, cudaDataType, cublasGemmAlgo_t);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
    const void*, const void*, cudaDataType, int, long long, const void*, cudaDataType, int, long long,
    const void*, void*, cudaDataType, int, long long, int, cudaDataType, cublasGemmAlgo_t);
