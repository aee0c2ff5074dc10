#include "matmul.hpp"

#include <cuda_fp16.h>

namespace zero1 {

// d = factor * op(a) * op(b) + beta * d, column-major, as cuBLAS counts.
struct Matmul::Product {
    cublasOperation_t transa, transb;
    const void *a, *b;
    void* d;
    int m, n, k;
    float factor, beta;
    const void* bias;
};

Matmul::Matmul(cudaDataType_t type, bool half_accumulator, bool split_k, bool tf32)
    : type_(type), split_k_(split_k) {
    const bool half = half_accumulator && type == CUDA_R_16F;
    compute_ = half ? CUBLAS_COMPUTE_16F : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    scale_ = half ? CUDA_R_16F : CUDA_R_32F;
    ZERO1_CHECK(cublasLtCreate(&handle_));
    ZERO1_CHECK(cudaMalloc(&workspace_, kWorkspace));
}

Matmul::~Matmul() {
    cudaFree(workspace_);
    cublasLtDestroy(handle_);
}

namespace {

cublasLtMatrixLayout_t layout(cudaDataType_t type, int rows, int columns) {
    cublasLtMatrixLayout_t made = nullptr;
    ZERO1_CHECK(cublasLtMatrixLayoutCreate(&made, type, rows, columns, rows));
    return made;
}

}  // namespace

void Matmul::run(const Product& p, cudaStream_t stream) const {
    cublasLtMatmulDesc_t call = nullptr;
    ZERO1_CHECK(cublasLtMatmulDescCreate(&call, compute_, scale_));
    const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
        ZERO1_CHECK(cublasLtMatmulDescSetAttribute(call, which, &value, sizeof value));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transa);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transb);
    if (p.bias) {
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
        set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    }
    const bool ta = p.transa == CUBLAS_OP_T, tb = p.transb == CUBLAS_OP_T;
    const cublasLtMatrixLayout_t a = layout(type_, ta ? p.k : p.m, ta ? p.m : p.k);
    const cublasLtMatrixLayout_t b = layout(type_, tb ? p.n : p.k, tb ? p.k : p.n);
    const cublasLtMatrixLayout_t d = layout(type_, p.m, p.n);
    cublasLtMatmulPreference_t preference = nullptr;
    ZERO1_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    ZERO1_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace,
                                                     sizeof kWorkspace));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    ZERO1_CHECK(cublasLtMatmulAlgoGetHeuristic(handle_, call, a, b, d, d, preference, 1, &best, &found));
    if (found == 0) fail("cublasLtMatmulAlgoGetHeuristic", "no algorithm");
    if (split_k_) {
        cublasLtMatmulAlgo_t changed = best.algo;
        const int parts = 4;
        const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
        cublasLtMatmulHeuristicResult_t allowed{};
        // Not every algorithm can; the others stay as they are.
        if (cublasLtMatmulAlgoConfigSetAttribute(&changed, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts) ==
                CUBLAS_STATUS_SUCCESS &&
            cublasLtMatmulAlgoConfigSetAttribute(&changed, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                                 sizeof scheme) == CUBLAS_STATUS_SUCCESS &&
            cublasLtMatmulAlgoCheck(handle_, call, a, b, d, d, &changed, &allowed) == CUBLAS_STATUS_SUCCESS &&
            allowed.workspaceSize <= kWorkspace)
            best.algo = changed;
    }
    const __half half_factor = __float2half(p.factor), half_beta = __float2half(p.beta);
    const bool half = scale_ == CUDA_R_16F;
    const void* const factor = half ? static_cast<const void*>(&half_factor) : &p.factor;
    const void* const beta = half ? static_cast<const void*>(&half_beta) : &p.beta;
    ZERO1_CHECK(cublasLtMatmul(handle_, call, factor, p.a, a, p.b, b, beta, p.d, d, p.d, d, &best.algo, workspace_,
                               kWorkspace, stream));
    cublasLtMatmulPreferenceDestroy(preference);
    for (const cublasLtMatrixLayout_t l : {a, b, d}) cublasLtMatrixLayoutDestroy(l);
    cublasLtMatmulDescDestroy(call);
}

void Matmul::forward(void* y, const void* x, const void* weight, const void* bias, int rows, int in, int out,
                     cudaStream_t stream, float factor) const {
    run({CUBLAS_OP_T, CUBLAS_OP_N, weight, x, y, out, rows, in, factor, 0, bias}, stream);
}

void Matmul::backward(void* dx, const void* dy, const void* weight, int rows, int in, int out,
                      cudaStream_t stream) const {
    run({CUBLAS_OP_N, CUBLAS_OP_N, weight, dy, dx, in, rows, out, 1, 0, nullptr}, stream);
}

void Matmul::weight_backward(void* dweight, const void* dy, const void* x, int rows, int in, int out,
                             cudaStream_t stream) const {
    run({CUBLAS_OP_N, CUBLAS_OP_T, x, dy, dweight, in, out, rows, 1, 1, nullptr}, stream);
}

}  // namespace zero1
