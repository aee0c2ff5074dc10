// A program that names a weight, frees it after the first step, and goes on with another one in its place.
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdio>

#include "instrument/preload/mptrace.h"

namespace {

constexpr int kSize = 16;
constexpr std::size_t kBytes = sizeof(float) * kSize * kSize;

void* new_weight() {
    void* memory = nullptr;
    cudaMalloc(&memory, kBytes);
    cudaMemset(memory, 0, kBytes);
    return memory;
}

}  // namespace

int main() {
    cublasLtHandle_t blas = nullptr;
    cublasLtCreate(&blas);
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, kSize, kSize, kSize);
    void* weight = new_weight();
    void* const result = new_weight();
    const long long sizes[] = {kSize, kSize};
    if (mptrace_tensor) mptrace_tensor(weight, MPTRACE_FP32, sizes, 2, MPTRACE_PARAMETER, "weight");
    const float one = 1, zero = 0;
    bool good = true;
    for (int step = 0; step < 4; ++step) {
        good = cublasLtMatmul(blas, product, &one, weight, layout, weight, layout, &zero, result, layout,
                              result, layout, nullptr, nullptr, 0, nullptr) == CUBLAS_STATUS_SUCCESS &&
               good;
        good = cudaDeviceSynchronize() == cudaSuccess && good;
        if (step == 0) {
            cudaFree(weight);
            weight = new_weight();
        }
        if (mptrace_step) mptrace_step(0, -1);
    }
    std::puts(good ? "done" : "failed");
}
