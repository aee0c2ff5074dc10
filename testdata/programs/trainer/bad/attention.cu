// Scores, masking and the value product of attention.
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "reduce.cuh"

__global__ void mask_scores(__half* scores, int n) {
    const int row = blockIdx.x;
    const __half masked = __float2half(-1e9f);  // plant: MP301 -inf in fp16: a fully masked row becomes NaN
    for (int i = threadIdx.x; i < n; i += kThreads)
        if (i > row) scores[row * n + i] = masked;
}

__global__ void add_positions(__half* x, int n, int width) {
    for (int i = threadIdx.x; i < n; i += kThreads) {
        const __half position = __int2half_rn(i);  // plant: MP306 positions above 2048 collide
        x[i * width] = __hadd(x[i * width], position);
    }
}

__global__ void normalise_rows(__half* probabilities, const __half* totals, int n) {
    const __half eps = __float2half(1e-8f);  // plant: MP302 flushes to zero: 0/0 for an empty row
    const int row = blockIdx.x;
    for (int i = threadIdx.x; i < n; i += kThreads)
        probabilities[row * n + i] = __hdiv(probabilities[row * n + i], __hadd(totals[row], eps));
}

__global__ void tile_product(__half* c, const __half* a, const __half* b, int n) {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> fc;  // plant: MP407 n / 16 tiles are added in half
    wmma::fill_fragment(fc, __float2half(0.0f));
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + k, n);
        wmma::load_matrix_sync(fb, b + k, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c, fc, n, wmma::mem_row_major);
}

cublasStatus_t values(cublasHandle_t handle, const __half* weights, const __half* v, __half* out, int n, int width) {
    const __half one = __float2half(1.0f), zero = __float2half(0.0f);
    return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, width, n, n, &one, v, CUDA_R_16F, width,  // plant: MP406 accumulates in half
                        weights, CUDA_R_16F, n, &zero, out, CUDA_R_16F, width, CUBLAS_COMPUTE_16F,
                        CUBLAS_GEMM_DEFAULT);
}
