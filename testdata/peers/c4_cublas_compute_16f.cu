#include <cublas_v2.h>
#include <cuda_fp16.h>

cublasStatus_t product_bad(cublasHandle_t h, const __half* a, const __half* b, __half* c, int n) {
    const __half one = __float2half(1.0f), zero = __float2half(0.0f);
    return cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, CUDA_R_16F, n, b, CUDA_R_16F, n,  // defect C4: MP406
                        &zero, c, CUDA_R_16F, n, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t product_good(cublasHandle_t h, const __half* a, const __half* b, __half* c, int n) {
    cublasSetMathMode(h, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    const float one = 1.0f, zero = 0.0f;
    return cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, CUDA_R_16F, n, b, CUDA_R_16F, n,
                        &zero, c, CUDA_R_16F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}
