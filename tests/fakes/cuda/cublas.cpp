// A fake libcublas.so.13: like the real one, it calls libcublasLt for its matrix products.
#include <cublasLt.h>
#include <cublas_v2.h>

#include "tests/fakes/cuda/calls.hpp"
#include "tests/fakes/cuda/faults.hpp"

struct cublasContext {
    cudaStream_t stream = nullptr;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
    cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
    cublasLtHandle_t lt = nullptr;
};

namespace {

cublasLtMatrixLayout_t layout(cudaDataType_t type, int rows, int columns, int pitch, int batch,
                              long long offset) {
    cublasLtMatrixLayout_t made = nullptr;
    cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                               pitch);
    const std::int64_t stride = offset;
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                     sizeof stride);
    return made;
}

// What the handle's math mode makes of a computation in fp32.
cublasComputeType_t computed(const cublasContext& handle, cublasComputeType_t compute) {
    if (compute != CUBLAS_COMPUTE_32F) return compute;
    const int math = handle.math & 0xF;
    return math == CUBLAS_TF32_TENSOR_OP_MATH ? CUBLAS_COMPUTE_32F_FAST_TF32
           : math == CUBLAS_TENSOR_OP_MATH    ? CUBLAS_COMPUTE_32F_FAST_16F
                                              : compute;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* into) {
    if (const int code = mp::fake::fault("cublasCreate_v2")) return static_cast<cublasStatus_t>(code);
    *into = new cublasContext;
    return cublasLtCreate(&(*into)->lt);
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    cublasLtDestroy(handle->lt);
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t code) { return cublasLtGetStatusString(code); }
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
    if (const int code = mp::fake::fault("cublasGetStream_v2")) return static_cast<cublasStatus_t>(code);
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
    if (const int code = mp::fake::fault("cublasGetMathMode")) return static_cast<cublasStatus_t>(code);
    *mode = handle->math;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    handle->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
    if (const int code = mp::fake::fault("cublasGetPointerMode_v2")) return static_cast<cublasStatus_t>(code);
    *mode = handle->pointers;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                                          int m, int n, int k, const void* alpha, const void* a,
                                          cudaDataType at, int lda, long long sa, const void* b,
                                          cudaDataType bt, int ldb, long long sb, const void* beta, void* c,
                                          cudaDataType ct, int ldc, long long sc, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    MP_REMEMBER(cublasStatus_t, "cublasGemmStridedBatchedEx", handle, ta, tb, m, n, k, alpha, a, at, lda, sa,
                b, bt, ldb, sb, beta, c, ct, ldc, sc, batch, compute, algo);
    if (const int code = mp::fake::fault("cublasGemmEx")) return static_cast<cublasStatus_t>(code);
    cublasLtMatmulDesc_t call = nullptr;
    cublasLtMatmulDescCreate(&call, at == CUDA_R_32F ? computed(*handle, compute) : compute,
                             compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F : CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(call, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta);
    cublasLtMatmulDescSetAttribute(call, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb);
    const int mode = handle->pointers;
    cublasLtMatmulDescSetAttribute(call, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    const bool plain_a = ta == CUBLAS_OP_N, plain_b = tb == CUBLAS_OP_N;
    const cublasLtMatrixLayout_t layouts[] = {layout(at, plain_a ? m : k, plain_a ? k : m, lda, batch, sa),
                                              layout(bt, plain_b ? k : n, plain_b ? n : k, ldb, batch, sb),
                                              layout(ct, m, n, ldc, batch, sc)};
    const cublasStatus_t result =
        cublasLtMatmul(handle->lt, call, alpha, a, layouts[0], b, layouts[1], beta, c, layouts[2], c,
                       layouts[2], nullptr, nullptr, 0, handle->stream);
    for (const cublasLtMatrixLayout_t l : layouts) cublasLtMatrixLayoutDestroy(l);
    cublasLtMatmulDescDestroy(call);
    return result;
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType at, int lda, const void* b,
                            cudaDataType bt, int ldb, const void* beta, void* c, cudaDataType ct, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    MP_REMEMBER(cublasStatus_t, "cublasGemmEx", handle, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta,
                c, ct, ldc, compute, algo);
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta, c,
                                      ct, ldc, 0, 1, compute, algo);
}
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
    MP_REMEMBER(cublasStatus_t, "cublasSgemm_v2", handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c,
                ldc);
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, CUDA_R_32F, lda, 0, b, CUDA_R_32F,
                                      ldb, 0, beta, c, CUDA_R_32F, ldc, 0, 1, CUBLAS_COMPUTE_32F,
                                      CUBLAS_GEMM_DEFAULT);
}

}  // extern "C"
