// Scores, masking and the value product of attention.
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "reduce.cuh"

__global__ void mask_scores(__half* scores, int n) {
    const int row = blockIdx.x;
    const __half masked = __float2half(-65504.0f);
    for (int i = threadIdx.x; i < n; i += kThreads)
        if (i > row) scores[row * n + i] = masked;
}

__global__ void add_positions(__half* x, int n, int width) {
    for (int i = threadIdx.x; i < n; i += kThreads) {
        const float position = static_cast<float>(i);
        x[i * width] = __float2half(__half2float(x[i * width]) + position);
    }
}

__global__ void normalise_rows(__half* probabilities, const __half* totals, int n) {
    const int row = blockIdx.x;
    const float total = __half2float(totals[row]) + 1e-8f;
    for (int i = threadIdx.x; i < n; i += kThreads)
        probabilities[row * n + i] = __float2half(__half2float(probabilities[row * n + i]) / total);
}

__global__ void tile_product(float* c, const __half* a, const __half* b, int n) {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + k, n);
        wmma::load_matrix_sync(fb, b + k, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c, fc, n, wmma::mem_row_major);
}

cublasStatus_t values(cublasHandle_t handle, const __half* weights, const __half* v, __half* out, int n, int width) {
    cublasSetMathMode(handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    const float one = 1.0f, zero = 0.0f;
    return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, width, n, n, &one, v, CUDA_R_16F, width,
                        weights, CUDA_R_16F, n, &zero, out, CUDA_R_16F, width, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT);
}
